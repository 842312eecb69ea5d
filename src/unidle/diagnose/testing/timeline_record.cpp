// Writes timelines as records.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>

#include "unidle/base/clock.h"
#include "unidle/base/error.h"
#include "unidle/base/numbers.h"
#include "unidle/diagnose/testing/timeline_case.h"
#include "unidle/record/record.h"

namespace unidle::diagnose::testing {

namespace {

constexpr std::int64_t kReading_ns = 250 * kNsPerMs;  // the sampler's interval

/// Plays the lines of one run into a record.
class TimelineWriter {
 public:
  TimelineWriter(const TimelineCase& timeline, const std::map<std::string, std::string>& replaced,
                 const std::filesystem::path& folder, const RecordVariation& disguise)
      : timeline_(timeline),
        disguise_(disguise),
        values_(timeline.values),
        writer_(folder),
        now_ns_(disguise.start_ns) {
    for (const auto& [name, value] : replaced) {
      if (!values_.contains(name)) {
        throw Error(ErrorCode::kInput, timeline.file.string(), "there is no let " + name);
      }
      values_[name] = value;
    }
  }

  void play() {
    writer_.set_meta(record::meta::kStartNs, disguise_.start_ns);
    run_lines(0, timeline_.lines.size());
    write_series();
    write_words();
    writer_.set_meta(record::meta::kEndNs, now_ns_);
    writer_.set_meta(record::meta::kHost, host_);
    writer_.set_meta(record::meta::kGpus, gpus_);
    writer_.set_meta(record::meta::kExit, {{"code", exit_code_}, {"signal", exit_signal_}});
    writer_.set_meta(record::meta::kOutcome,
                     outcome_.empty() ? exit_code_ == 0 && exit_signal_ == 0 ? "completed" : "failed" : outcome_);
    writer_.set_output_tail("stdout", output_);
    writer_.flush();
  }

 private:
  using Words = std::vector<std::string>;
  struct Series {
    std::string name;
    double value;
    double last;
    std::string subject;
  };

  [[noreturn]] void fail(const std::string& message) const {
    throw Error(ErrorCode::kInput, fmt::format("{}:{}", timeline_.file.string(), line_ + 1), message);
  }

  /// The line with values substituted; nothing when it is left out.
  std::optional<std::string> expanded(const std::string& line) const {
    std::string out;
    for (std::size_t at = 0; at < line.size();) {
      if (line[at] != '$') {
        out += line[at++];
        continue;
      }
      std::size_t end = at + 1;
      while (end < line.size() && (std::isalnum(static_cast<unsigned char>(line[end])) != 0 || line[end] == '_')) {
        ++end;
      }
      const auto value = values_.find(line.substr(at + 1, end - at - 1));
      if (value == values_.end()) {
        fail("there is no let " + line.substr(at + 1, end - at - 1));
      }
      if (value->second == "-") {
        const std::size_t word = out.find_last_of(' ');
        const bool keyed = word != std::string::npos && out.find('=', word) == out.size() - 1;
        if (!keyed) {
          return std::nullopt;
        }
        out.erase(word);  // a word KEY=$NAME is left out whole
      } else {
        out += value->second;
      }
      at = end;
    }
    return out;
  }

  void run_lines(std::size_t begin, std::size_t end) {
    for (line_ = begin; line_ < end; ++line_) {
      const std::optional<std::string> line = expanded(timeline_.lines[line_]);
      if (!line || line->empty()) {
        continue;
      }
      std::istringstream stream(*line);
      Words words;
      for (std::string word; stream >> word;) {
        words.push_back(word);
      }
      if (words[0] == "repeat") {
        repeat(static_cast<int>(number(word_at(words, 1))), end);
      } else {
        directive(words, *line);
      }
    }
  }

  void repeat(int times, std::size_t end) {
    const std::size_t first = line_ + 1;
    const auto last = std::find(timeline_.lines.begin() + static_cast<std::ptrdiff_t>(first),
                                timeline_.lines.begin() + static_cast<std::ptrdiff_t>(end), "end");
    const auto stop = static_cast<std::size_t>(last - timeline_.lines.begin());
    if (stop == end) {
      fail("repeat without end");
    }
    for (int i = 0; i < times; ++i) {
      run_lines(first, stop);
    }
    line_ = stop;
  }

  void directive(const Words& words, const std::string& line) {
    const std::string& what = words[0];
    if (what == "host") {
      host(words);
    } else if (what == "gpu") {
      gpu(words);
    } else if (what == "setting") {
      setting(words);
    } else if (what.starts_with("note")) {
      note(what, line);
    } else if (what == "startup" || what == "validate" || what == "checkpoint" || what == "pause") {
      span(what, time_ns(word_at(words, 1)));
    } else if (what == "steps") {
      steps(words);
    } else if (what == "work") {
      work(words);
    } else if (what == "series") {
      const bool grows = words.size() > 3 && words[3] == "to";
      const std::size_t subject = grows ? 5 : 3;
      const double value = number(word_at(words, 2));
      series_.push_back({word_at(words, 1), value, grows ? number(word_at(words, 4)) : value,
                         words.size() > subject ? words[subject] : ""});
    } else if (what == "output") {
      output(line.substr(line.find("output") + 6));
    } else if (what == "exit") {
      exit_code_ = static_cast<int>(number(word_at(words, 1)));
      exit_signal_ = words.size() > 2 ? static_cast<int>(number(words[2])) : 0;
    } else if (what == "outcome") {
      outcome_ = word_at(words, 1);
    } else {
      fail("what is '" + what + "'?");
    }
  }

  const std::string& word_at(const Words& words, std::size_t at) const {
    if (at >= words.size()) {
      fail("a word is missing");
    }
    return words[at];
  }

  double number(const std::string& text) const {
    const auto value = parse_number<double>(text);
    if (!value) {
      fail("'" + text + "' is no number");
    }
    return *value;
  }

  /// A number with one of `units`.
  double with_unit(const std::string& text, const std::map<std::string, double>& units) const {
    const std::size_t end = text.find_first_not_of("0123456789.eE-");
    const auto unit = units.find(end == std::string::npos ? "" : text.substr(end));
    if (unit == units.end()) {
      fail("'" + text + "' has no known unit");
    }
    return number(text.substr(0, end)) * unit->second;
  }
  std::int64_t time_ns(const std::string& text) const {
    return std::llround(with_unit(text, {{"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"min", 60e9}, {"h", 3600e9}}));
  }
  double bytes(const std::string& text) const {
    return with_unit(text, {{"", 1}, {"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}});
  }

  /// KEY=VALUE words from `first` on.
  std::map<std::string, std::string> keys(const Words& words, std::size_t first) const {
    std::map<std::string, std::string> found;
    for (std::size_t i = first; i < words.size(); ++i) {
      const auto equals = words[i].find('=');
      if (equals == std::string::npos) {
        fail("expected KEY=VALUE, found '" + words[i] + "'");
      }
      found[words[i].substr(0, equals)] = words[i].substr(equals + 1);
    }
    return found;
  }

  void host(const Words& words) {
    for (const auto& [key, value] : keys(words, 1)) {
      if (key == "cpus") {
        host_["cpus_allowed"] = number(value);
      } else if (key == "online") {
        host_["cpus_online"] = number(value);
      } else if (key == "before_mask") {
        host_["cpus_before_mask"] = number(value);
      } else if (key == "memory") {
        host_["memory_bytes"] = bytes(value);
      } else if (key == "flags") {
        std::istringstream flags(value);
        for (std::string flag; std::getline(flags, flag, ',');) {
          host_["cpu_flags"].push_back(flag);
        }
      } else {
        fail("what is '" + key + "'?");
      }
    }
  }

  void gpu(const Words& words) {
    nlohmann::json facts = {{"index", gpus_.size()}, {"name", "scripted"}};
    for (const auto& [key, value] : keys(words, 1)) {
      if (key == "memory") {
        facts["memory_bytes"] = bytes(value);
      } else if (key == "capability") {
        facts["capability"] = value;
      } else if (key == "width" || key == "generation") {
        facts["pcie_max"][key] = number(value);
      } else if (key == "clock") {
        facts["sm_clock_max_mhz"] = number(value);
      } else if (key == "power") {
        facts["power_default_limit_w"] = number(value);
      } else {
        fail("what is '" + key + "'?");
      }
    }
    gpus_.push_back(facts);
  }

  void setting(const Words& words) {
    const std::string& knob = word_at(words, 1);
    std::string effective = word_at(words, 2);
    std::string location;
    std::string called_at;
    bool configured = false;
    for (std::size_t i = 3; i < words.size(); ++i) {
      if (words[i] == "at") {
        location = word_at(words, ++i);
        configured = true;
      } else if (words[i] == "effective") {
        configured = true;
        effective = word_at(words, ++i);
      } else if (words[i] == "called") {
        called_at = word_at(words, ++i);
      } else if (words[i] == "variable") {
        settings_.push_back(record::Setting{knob, words[2], "environment", word_at(words, ++i)});
      } else {
        fail("what is '" + words[i] + "'?");
      }
    }
    if (configured) {
      settings_.push_back(record::Setting{knob, words[2], "configured", location});
    }
    settings_.push_back(record::Setting{knob, effective, "effective", called_at});
  }

  void note(const std::string& what, const std::string& line) {
    const auto at = what.find('@');
    const auto brace = line.find('{');
    nlohmann::json body = nlohmann::json::parse(brace == std::string::npos ? "" : line.substr(brace), nullptr, false);
    if (!body.is_object()) {
      fail("a note is a JSON object");
    }
    const auto process =
        at == std::string::npos ? disguise_.process : static_cast<std::int64_t>(number(what.substr(at + 1)));
    notes_.push_back(record::Note{now_ns_, process, std::move(body)});
  }

  void span(const std::string& kind, std::int64_t duration_ns) {
    if (kind != "pause") {
      writer_.add(record::Span{kind, disguise_.process, now_ns_, duration_ns, 0});
    }
    now_ns_ += duration_ns;
  }

  void set_parts(const std::map<std::string, std::string>& keys, record::Step& step, std::int64_t& other_ns) const {
    const std::map<std::string, std::optional<std::int64_t> record::Step::*> parts = {
        {"input", &record::Step::input_ns},         {"transfer", &record::Step::transfer_ns},
        {"forward", &record::Step::forward_ns},     {"backward", &record::Step::backward_ns},
        {"optimizer", &record::Step::optimizer_ns}, {"sync", &record::Step::sync_ns}};
    for (const auto& [key, value] : keys) {
      if (const auto part = parts.find(key); part != parts.end()) {
        step.*(part->second) = time_ns(value);
      } else if (key == "other") {
        other_ns = time_ns(value);
      } else if (key == "samples") {
        step.samples = std::llround(number(value));
      } else if (key == "loss") {
        step.loss = value == "nan" ? std::numeric_limits<double>::quiet_NaN() : number(value);
      } else if (key == "micro") {
        step.micro_batches = std::llround(number(value));
      } else if (key == "syncs") {
        step.syncs = std::llround(number(value));
      } else {
        fail("what is '" + key + "'?");
      }
    }
  }

  void steps(const Words& words) {
    const auto count = static_cast<int>(number(word_at(words, 1)));
    const auto every = std::find(words.begin(), words.end(), "every");
    auto usual = keys(Words(words.begin(), every), 2);
    const int processes = usual.contains("processes") ? static_cast<int>(number(usual.at("processes"))) : 1;
    usual.erase("processes");
    const bool has_other = every != words.end() && words.end() - every > 2;
    const auto special = has_other ? keys(Words(every + 2, words.end()), 0) : std::map<std::string, std::string>{};
    const int nth = has_other ? static_cast<int>(number(*(every + 1))) : 0;
    for (int i = 0; i < count; ++i) {
      record::Step step;
      step.process = disguise_.process;
      step.index = index_++;
      step.t_ns = now_ns_;
      std::int64_t other_ns = 0;
      set_parts(usual, step, other_ns);
      if (nth > 0 && i % nth == nth - 1) {
        set_parts(special, step, other_ns);
      }
      step.duration_ns = other_ns;
      for (const auto& part :
           {step.input_ns, step.transfer_ns, step.forward_ns, step.backward_ns, step.optimizer_ns, step.sync_ns}) {
        step.duration_ns += part.value_or(0);
      }
      now_ns_ += step.duration_ns;
      for (int process = 0; process < processes; ++process) {
        step.process = disguise_.process + process;
        writer_.add(step);
      }
    }
  }

  void work(const Words& words) {
    const auto threads = static_cast<int>(number(word_at(words, 1)));
    const auto found = keys(words, 2);
    if (!found.contains("samples") || !found.contains("each")) {
      return;  // nobody reported it
    }
    const auto samples = std::llround(number(found.at("samples")));
    const std::int64_t each_ns = time_ns(found.at("each"));
    for (std::int64_t t = disguise_.start_ns; t + kNsPerSecond <= now_ns_; t += kNsPerSecond) {
      for (int thread = 1; thread <= threads; ++thread) {
        writer_.add(record::SampleWork{disguise_.process, thread, t, samples, samples * each_ns, each_ns, 0});
      }
    }
  }

  void output(std::string text) {
    for (std::size_t at = 0; (at = text.find("\\n", at)) != std::string::npos;) {
      text.replace(at, 2, "\n");
    }
    output_ += text.substr(text.find_first_not_of(' ')) + "\n";
  }

  void write_words() {
    if (disguise_.reversed) {
      std::reverse(settings_.begin(), settings_.end());
      std::reverse(notes_.begin(), notes_.end());
    }
    for (const record::Setting& setting : settings_) {
      writer_.add(setting);
    }
    for (const record::Note& note : notes_) {
      writer_.add(note);
    }
  }

  void write_series() {
    for (const Series& one : series_) {
      const std::int64_t id = writer_.series({one.name, "", one.subject});
      for (std::int64_t t = disguise_.start_ns; t < now_ns_; t += kReading_ns) {
        const double part =
            static_cast<double>(t - disguise_.start_ns) / static_cast<double>(now_ns_ - disguise_.start_ns);
        writer_.add_point(id, {t, one.value + part * (one.last - one.value)});
      }
    }
  }

  const TimelineCase& timeline_;
  const RecordVariation disguise_;
  std::map<std::string, std::string> values_;
  record::Writer writer_;
  std::size_t line_ = 0;
  std::int64_t now_ns_;
  std::int64_t index_ = 0;
  nlohmann::json host_ = nlohmann::json::object();
  nlohmann::json gpus_ = nlohmann::json::array();
  std::vector<Series> series_;
  std::vector<record::Setting> settings_;
  std::vector<record::Note> notes_;
  std::string output_;
  std::string outcome_;
  int exit_code_ = 0;
  int exit_signal_ = 0;
};

}  // namespace

void write_record(const TimelineCase& timeline, const std::map<std::string, std::string>& replaced,
                  const std::filesystem::path& folder, const RecordVariation& disguise) {
  TimelineWriter(timeline, replaced, folder, disguise).play();
}

}  // namespace unidle::diagnose::testing
