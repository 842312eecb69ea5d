#include "unidle/logs/text_log.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "unidle/base/characters.h"
#include "unidle/base/printable.h"
#include "unidle/logs/detail/completion.h"
#include "unidle/logs/detail/counters.h"
#include "unidle/logs/detail/failures.h"
#include "unidle/logs/detail/keywords.h"
#include "unidle/logs/detail/line_front.h"
#include "unidle/logs/detail/metric_table.h"
#include "unidle/logs/detail/new_start.h"
#include "unidle/logs/detail/numbers.h"
#include "unidle/logs/detail/phases.h"
#include "unidle/logs/detail/progress.h"
#include "unidle/logs/detail/shapes.h"
#include "unidle/logs/detail/smi_table.h"
#include "unidle/logs/detail/stated.h"
#include "unidle/logs/lines.h"
#include "unidle/logs/timestamp.h"

namespace unidle::logs {

namespace {

using detail::Hit;
using detail::LogLine;
using detail::Word;

/// A time this far from the last one means something else: a file's date, a quoted line.
constexpr std::int64_t kFarNs = std::int64_t{30} * 86'400 * 1'000'000'000;
/// A word like "begin" counts only this close to what begins: "running validation", "开始验证".
constexpr std::uint32_t kCloseBytes = 6;
constexpr double kFewestRows = 10;

const detail::Matcher& matcher() {
  static const detail::Matcher kMatcher(detail::log_keywords());
  return kMatcher;
}

/// Whether the text can be a setting's value: a number or a switch, not a word of a sentence ("batch size per device").
bool is_value(std::string_view token) {
  static constexpr std::array<std::string_view, 14> kWords = {"true", "false", "yes",  "no",   "on",   "off", "none",
                                                              "null", "auto",  "fp16", "bf16", "fp32", "o1",  "o2"};
  return detail::whole_number(token) || std::find(kWords.begin(), kWords.end(), lower(token)) != kWords.end();
}

/// "global batch size", "Total train batch size": over all devices, whereas the setting is that of one loader.
bool is_of_all_devices(std::string_view before) {
  static constexpr std::array<std::string_view, 4> kWords = {"global ", "total ", "total train ", "effective "};
  const std::string text = lower(before.substr(before.size() - std::min<std::size_t>(before.size(), 16)));
  return std::any_of(kWords.begin(), kWords.end(), [&](std::string_view word) { return text.ends_with(word); });
}

class TextReader {
 public:
  explicit TextReader(TextLog& log)
      : log_(log), failures_(log), counters_(log, phases_), completion_(log), shapes_(matcher()) {}

  void read(std::string_view raw, std::uint64_t number) {
    const detail::Shape* shape = shapes_.known(raw);
    const std::string_view text = metrics_.words(shape != nullptr ? raw : without_escapes(raw, scratch_));
    const auto stamp = stamps_.at_begin(text);
    if (stamp) {
      set_time(*stamp);
    }
    has_time_ = stamp.has_value();
    if (starts_.completes(text)) {
      log_.started_line = number;
    }
    if (const std::size_t before = log_.failures.size(); failures_.in_traceback(text)) {
      if (log_.failures.size() > before) {
        phases_.start_again();
      }
      return;
    }
    shape = shape != nullptr ? shape : &shapes_.look(text);
    const LogLine line{text, number, shape->hits, shape->bar_at};
    table_row(line);
    const std::int64_t progress_before = log_.progress_lines;
    if (line.hits.empty() && line.bar_at == std::string_view::npos) {
      log_.other_line = trimmed(text).empty() ? log_.other_line : number;
      return;
    }
    read_times(line);
    read_settings(line);
    if (const Hit* hit = line.hits.first(Word::kWallTime)) {
      wall_time(line, *hit);
    }
    if (line.hits.has(Word::kTotal)) {
      completion_.configure(line);
    }
    if (!is_of_another(text)) {
      read_run(line);
    }
    if (log_.progress_lines == progress_before && !line.hits.has(Word::kTraceback)) {
      log_.other_line = number;
    }
    failures_.read(line, now_or_last());  // its statement was about the run before the failure
    if (log_.end && log_.end->quote.line == number) {
      phases_.ended();
    }
  }

  void finish() {
    counters_.finish();
    completion_.finish();
    failures_.finish(last_ns_);
    log_.phases = phases_.result();
    log_.stated = stated_.result();
    log_.first_ns = first_ns_;
    log_.last_ns = last_ns_;
    log_.has_date = rank_ == 2;
  }

 private:
  /// Slurm uses "step" and "task" in another sense: "*** STEP 440575.0 ON n1 CANCELLED AT ...". wandb repeats the last
  /// values of a finished run.
  static bool is_of_another(std::string_view text) {
    return text.starts_with("slurmstepd") || text.starts_with("srun: ") || text.starts_with("wandb: ");
  }

  void set_time(const Stamp& stamp) {
    const int rank = stamp.has_year ? 2 : stamp.has_day ? 1 : 0;
    if (rank < rank_) {
      return;
    }
    const bool far = last_ns_ && std::abs(stamp.ns - *last_ns_) > kFarNs;
    if (rank == rank_ && far && phases_.training_seen()) {
      return;
    }
    if (rank > rank_ || far) {
      first_ns_ = stamp.ns;
      last_ns_ = stamp.ns;
      rank_ = rank;
      phases_.restart(stamp.ns);
      return;
    }
    now_ns_ = stamp.ns;
    first_ns_ = std::min(first_ns_.value_or(stamp.ns), stamp.ns);
    last_ns_ = std::max(last_ns_.value_or(stamp.ns), stamp.ns);
    phases_.at(stamp.ns);
  }

  /// Times that are not at the front: the output of `date`, of the scheduler, JSON fields.
  void read_times(const LogLine& line) {
    if (line.hits.has_any(Word::kWeekday, Word::kCancelled)) {
      if (const auto stamp = stamps_.anywhere(line.text)) {
        set_time(*stamp);
      }
    } else if (const Hit* key = line.hits.first(Word::kTimeKey); key != nullptr && line.text.front() == '{') {
      json_time(line.text.substr(key->end));
    }
  }

  /// "2025-08-04T15:47:39" or seconds since 1970.
  void json_time(std::string_view rest) {
    while (!rest.empty() && (rest.front() == ':' || rest.front() == ' ' || rest.front() == '"')) {
      rest.remove_prefix(1);
    }
    if (const auto ns = stamps_.date_time(rest)) {
      set_time({*ns, true, true});
      return;
    }
    if (const auto elapsed_s = detail::seconds_of_timedelta(rest)) {
      elapsed(static_cast<std::int64_t>(*elapsed_s * 1e9));
      return;
    }
    constexpr double kFirst = 631152000;  // 1990
    constexpr double kLast = 4102444800;  // 2100
    const auto seconds = detail::take_number(rest);
    if (seconds && *seconds > kFirst && *seconds < kLast) {
      set_time({static_cast<std::int64_t>(*seconds * 1e9), true, true});
    }
  }

  /// Time since the start, as transformers' callbacks write it; it restarts at 0 with the run.
  void elapsed(std::int64_t ns) {
    elapsed_before_ns_ += ns < elapsed_ns_ / 2 ? elapsed_ns_ : 0;  // ranks differ by a second
    elapsed_ns_ = ns;
    set_time({elapsed_before_ns_ + ns, false, false});
  }

  /// "Job Wall-clock time: 1-02:03:04"; not the one that was asked for.
  void wall_time(const LogLine& line, const Hit& hit) {
    const bool by_seff = hit.keyword->text.ends_with(' ');
    const auto wall_s = detail::seconds_of_timedelta(line.text.substr(hit.end));
    if (wall_s && (by_seff || lower(line.text.substr(0, hit.begin)).find("used") != std::string::npos)) {
      log_.stated_wall_s = wall_s;
    }
  }

  void table_row(const LogLine& line) {
    if (line.hits.has(Word::kSmiRow)) {
      table_.use_row(line.text, now_or_last(), log_.tables);
    } else if (!line.text.empty() && line.text.front() == '|') {
      table_.name_row(line.text);
    }
  }

  std::optional<std::int64_t> now_or_last() const { return now_ns_ ? now_ns_ : last_ns_; }

  void read_settings(const LogLine& line) {
    if (!line.hits.has_any(Word::kSetting, Word::kDevice, Word::kCapability, Word::kTrainSet, Word::kJobId)) {
      return;
    }
    for (const Hit& hit : line.hits.all()) {
      switch (hit.keyword->word) {
        case Word::kSetting: setting(line, hit); break;
        case Word::kDevice: device(line, hit); break;
        case Word::kTrainSet: training_rows(line, hit); break;
        case Word::kJobId: job_id(line, hit); break;
        case Word::kCapability:
          if (const auto token = detail::token_after(line.text, hit.end); detail::whole_number(token)) {
            log_.capability = std::string(token);
          }
          break;
        default: break;
      }
    }
  }

  void setting(const LogLine& line, const Hit& hit) {
    const std::string_view value = detail::token_after(line.text, hit.end);
    if (is_value(value) && !is_of_all_devices(line.text.substr(0, hit.begin))) {
      log_.settings[std::string(hit.keyword->of)] = {std::string(value), line.number};
    }
  }

  void device(const LogLine& line, const Hit& hit) {
    const std::string_view token = detail::token_after(line.text, hit.end);
    const auto is = [&](std::string_view name) {
      return token.starts_with(name) && (token.size() == name.size() || token[name.size()] == ':');
    };
    const bool quoted = hit.end < line.text.size() && (line.text[hit.end] == '"' || line.text[hit.end] == '\'');
    if (is("cuda") || is("hip")) {
      log_.device = std::string(token.substr(0, token.find(':')));
    } else if (is("cpu") && !log_.device &&
               !quoted) {  // in quotes it names what is on the CPU, as DeepSpeed's offload_param
      log_.device = "cpu";
    }
  }

  void training_rows(const LogLine& line, const Hit& hit) {
    if (other_rows_ || phases_.validating()) {
      return;
    }
    std::size_t at = hit.end;
    const std::size_t most = std::min(line.text.size(), hit.end + std::size_t{24});
    while (at < most && !is_digit(line.text[at])) {
      ++at;
    }
    std::string_view rest = line.text.substr(at);
    const auto rows = detail::take_number(rest);
    if (!rows || *rows < kFewestRows || *rows != std::floor(*rows) || rest.starts_with("%")) {
      return;
    }
    // Another size after training is that of another run in the same log.
    other_rows_ = log_.rows_per_epoch && log_.rows_per_epoch != rows && phases_.training_seen();
    if (other_rows_) {
      log_.rows_per_epoch.reset();
    } else if (!log_.rows_per_epoch) {
      log_.rows_per_epoch = rows;
    }
  }

  void job_id(const LogLine& line, const Hit& hit) {
    std::string_view rest = line.text.substr(hit.end);
    while (!rest.empty() && (rest.front() == ' ' || rest.front() == ':' || rest.front() == '=')) {
      rest.remove_prefix(1);
    }
    if (const auto id = detail::take_digits(rest); id && *id > 0 && !log_.job_id) {
      log_.job_id = id;
    }
  }

  /// Whether a word like "begin" is right beside one for validation.
  static bool announces_validation(const LogLine& line) {
    if (!line.hits.has(Word::kBegin)) {
      return false;
    }
    for (const Hit& begin : line.hits.all()) {
      for (const Hit& what : line.hits.all()) {
        if (begin.keyword->word != Word::kBegin || what.keyword->word != Word::kValidation) {
          continue;
        }
        const bool before = begin.begin <= what.begin && what.begin <= begin.end + kCloseBytes;
        const bool behind = what.end <= begin.begin && begin.begin <= what.end + 2 * kCloseBytes;
        if (before || behind) {
          return true;
        }
      }
    }
    return false;
  }

  void validation(const LogLine& line, const detail::Counters::News& news) {
    const bool result = news.loss || line.hits.has(Word::kMetric) || line.hits.has(Word::kEnd);
    if (!result && (announces_validation(line) || news.validation_bar)) {
      phases_.validation_begin();
      return;
    }
    stated_duration(line, log_.stated_validation_s);
    if (result && phases_.validating()) {
      phases_.validation_end();
      ++log_.validation_results;
    } else if (news.loss) {
      ++log_.validation_results;
      if (news.counted && !phases_.training_seen()) {
        phases_.train();  // one line per epoch, including validation
      }
    }
  }

  /// transformers states the time of the whole run, in which it also validated.
  bool whole_run(const LogLine& line) {
    const Hit* hit = line.hits.first(Word::kSuccess);
    if (hit == nullptr || hit->keyword->text != "train_runtime") {
      return false;
    }
    stated_duration(line, log_.stated_run_s);
    log_.validated_in_runs_s = log_.stated_validation_s.sum;
    return true;
  }

  void stated_duration(const LogLine& line, Readings& readings) {
    const Hit* hit = line.hits.first(Word::kDuration);
    if (hit == nullptr) {
      return;
    }
    if (readings && trimmed(line.text.substr(hit->end)).starts_with("=")) {
      return;  // "eval_runtime   = 0:00:40.00": transformers' table at the end repeats it
    }
    const bool bare = hit->keyword->text == "runtime" || hit->keyword->text == "val_time";
    const auto seconds = detail::seconds_after(line.text, hit->end, bare);
    if (seconds && *seconds > 0 && *seconds < 1e8) {
      readings.add(*seconds);
    }
  }

  void checkpoint(const LogLine& line) {
    if (line.hits.has(Word::kSaved) && line.hits.has(Word::kModel)) {
      phases_.checkpoint_end();
    } else if (line.hits.has(Word::kSaving) && line.hits.has(Word::kModel)) {
      phases_.checkpoint_begin();
    }
  }

  void read_run(const LogLine& line) {
    if (line.bar_at != std::string_view::npos && detail::is_of_preparation(line.text, line.bar_at)) {
      return;
    }
    const detail::Counters::News news = counters_.read(line, now_or_last());
    if (news.at_first_again) {
      phases_.began_again(news.fell_back);
    } else if (news.counted) {
      phases_.went_on();
    }
    if (line.hits.has(Word::kValidation)) {
      validation(line, news);
    } else if (whole_run(line)) {
      phases_.train();
    } else if (news.counted || news.is_bar || (news.loss && phases_.training_seen())) {
      phases_.train();
      if (line.hits.has(Word::kEpoch) && news.counted) {
        stated_duration(line, log_.stated_epoch_s);
      }
    }
    const bool trains = phases_.training_seen() && !phases_.validating() && !line.hits.has(Word::kValidation);
    stated_.read(line, news, trains || detail::averages_training(line));
    if (line.hits.has_any(Word::kSaving, Word::kSaved)) {
      checkpoint(line);
    }
    completion_.read(line, news);
    if (news.is_bar ? news.bar_moved : news.counted || news.loss) {
      ++log_.progress_lines;
      starts_.is_progress();
      const bool logged = !log_.failures.empty() && detail::message_in(line.text).level != detail::Level::kNone;
      log_.live_line = news.is_bar || news.at_first_again || has_time_ || logged ? line.number : log_.live_line;
    }
  }

  TextLog& log_;
  detail::Failures failures_;
  detail::Phases phases_;
  detail::Counters counters_;
  detail::Completion completion_;
  detail::Stated stated_;
  detail::SmiTable table_;
  detail::MetricTable metrics_;
  detail::NewStart starts_;
  StampReader stamps_;
  detail::Shapes shapes_;
  std::string scratch_;
  bool other_rows_ = false;
  bool has_time_ = false;  // the current line begins with one
  int rank_ = -1;
  std::int64_t elapsed_ns_ = 0;  // last value in the log
  std::int64_t elapsed_before_ns_ = 0;
  std::optional<std::int64_t> now_ns_;
  std::optional<std::int64_t> first_ns_;
  std::optional<std::int64_t> last_ns_;
};

}  // namespace

const Counter* TextLog::counter(std::string_view kind) const {
  const auto found =
      std::find_if(counters.begin(), counters.end(), [&](const Counter& one) { return one.kind == kind; });
  return found == counters.end() ? nullptr : &*found;
}

Counted TextLog::counted() const {
  Counted sum;
  for (const Counter& counter : counters) {
    sum.changes += counter.changes;
    sum.restarts += counter.restarts;
  }
  return sum;
}

bool TextLog::has_no_run_data() const { return !first_ns && has_only_times(); }

bool TextLog::has_only_times() const {
  return progress_lines == 0 && !end && failures.empty() && !error && !claim && tables.gpus.empty() && bars.empty();
}

TextLog read_text_log(Source& source) {
  TextLog log;
  log.file = source.name();
  log.tables.file = source.name();
  TextReader reader(log);
  Lines lines(source);
  std::string_view line;
  while (lines.next(line)) {
    log.bytes = lines.position();
    reader.read(line, lines.number());
  }
  log.lines = lines.number();
  log.bytes = lines.bytes();
  reader.finish();
  return log;
}

}  // namespace unidle::logs
