#include "unidle/logs/detail/completion.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "unidle/base/characters.h"
#include "unidle/base/substrings.h"
#include "unidle/logs/detail/numbers.h"

namespace unidle::logs::detail {

namespace {

/// A bar that is not known to be the training's outer one counts only if at most this many lines follow it.
constexpr std::uint64_t kMostLinesBehindBar = 5;
/// Bars of files and of memory advance faster than any training.
constexpr double kMostStepsPerSecond = 1000;
constexpr std::size_t kMostLengths = 16;

bool is_name_char(char c) { return is_letter(c) || is_digit(c) || c == '_' || c == '-'; }

/// "max_" before "epochs", "Num " before "Epochs", "--" before "epochs"; in lower case, blanks and "-" as "_".
std::string words_before(std::string_view line, std::size_t begin) {
  std::size_t at = begin;
  while (at > 0 && is_name_char(line[at - 1])) {
    --at;
  }
  if (at == begin && at > 0 && line[at - 1] == ' ') {
    --at;
    while (at > 0 && is_letter(line[at - 1])) {
      --at;
    }
  }
  std::string words = lower(line.substr(at, begin - at));
  std::replace_if(words.begin(), words.end(), [](char c) { return c == ' ' || c == '-'; }, '_');
  words.erase(0, words.find_first_not_of('_'));
  return words.find_first_not_of('_') == std::string::npos ? "" : words;
}

/// Prefixes that mean "all of them"; any other prefix counts something else.
bool are_all(std::string_view words) {
  static constexpr std::array<std::string_view, 13> kWords = {
      "",      "num_",   "n_",         "nb_",      "max_",      "total_",       "train_",
      "info_", "maxim_", "num_train_", "trainer_", "training_", "num_training_"};
  return std::find(kWords.begin(), kWords.end(), words) != kWords.end();
}

/// "End of epoch 4", "==end-of-epoch 4==".
bool is_end_of_epoch(const LogLine& line) {
  constexpr std::size_t kWords = std::string_view("end of ").size();
  const Hit* epoch = line.hits.first(Word::kEpoch);
  if (epoch == nullptr || epoch->begin < kWords) {
    return false;
  }
  const std::string before = lower(line.text.substr(epoch->begin - kWords, kWords));
  return before == "end of " || before == "end-of-";
}

/// Whether the decimal number at `begin` is named as a rate or a time.
bool is_no_result(std::string_view text, std::size_t begin) {
  static constexpr std::array<std::string_view, 5> kNames = {"lr", "rate", "time", "eta", "elapsed"};
  constexpr std::size_t kLongest = 8;
  const std::string_view before = text.substr(0, begin);
  const std::size_t end = before.find_last_not_of(" :=([") + 1;  // also without any: npos + 1 is 0
  const std::string name = lower(before.substr(end - std::min(end, kLongest), std::min(end, kLongest)));
  return std::ranges::any_of(kNames, [&](std::string_view one) { return name.ends_with(one); });
}

/// "Epoch [4/10] Recon: 0.0021": behind the count stands a value, whatever its name.
bool has_value(const LogLine& line) {
  const auto hit = std::ranges::find_if(line.hits.all(), [](const Hit& one) {
    return one.keyword->word == Word::kEpoch || one.keyword->word == Word::kEpisode ||
           one.keyword->word == Word::kRound;
  });
  if (hit == line.hits.all().end()) {
    return false;
  }
  const std::string_view text = line.text.substr(hit->end);
  for (std::size_t at = text.find('.'); at != std::string_view::npos; at = text.find('.', at + 1)) {
    std::size_t begin = at;
    while (begin > 0 && is_digit(text[begin - 1])) {
      --begin;
    }
    const bool decimal = begin < at && at + 1 < text.size() && is_digit(text[at + 1]);
    if (decimal && !is_no_result(text, begin)) {
      return true;
    }
  }
  return false;
}

/// Also "Epoch 4 finished".
bool tells_end_of_epoch(const LogLine& line) {
  return (line.hits.has(Word::kEpoch) && line.hits.has(Word::kEnd)) || is_end_of_epoch(line);
}

/// "Training", "Epochs", "Steps"; not "sampling loop time step", which counts within one sample.
bool is_training_label(std::string_view label) {
  static constexpr std::array<std::string_view, 4> kLabels = {"train", "epoch", "step", "iter"};
  return starts_with_any(lower(label), kLabels);
}

std::optional<double> as_total(std::optional<double> value) {
  return value && *value >= 1 && *value == std::floor(*value) ? value : std::nullopt;
}

}  // namespace

std::optional<double> configured_total(std::string_view line, const Hit& hit) {
  std::string_view rest = line.substr(hit.end);
  while (!rest.empty() && is_letter(rest.front())) {
    rest.remove_prefix(1);  // "max_iter" of "max_iterations"
  }
  const std::string words = words_before(line, hit.begin);
  const bool of_option = line.substr(0, hit.begin).rfind("--") != std::string_view::npos;
  const std::size_t named = line.size() - rest.size();
  const std::size_t sign = rest.find_first_not_of(" '\"");
  const bool assigned = sign != std::string_view::npos && (rest[sign] == ':' || rest[sign] == '=');
  if (are_all(words) && (assigned || (of_option && !rest.empty() && rest.front() == ' '))) {
    return as_total(whole_number(token_after(line, named)));
  }
  // "Starting training for 300 epochs...", "125 iterations per epoch. 12500 max iterations"
  const auto before = as_total(value_before(line, hit.begin));
  const std::size_t number = line.substr(0, hit.begin).find_last_not_of(" 0123456789,");
  const bool announced = number != std::string_view::npos && lower(line.substr(0, number + 1)).ends_with("for");
  return announced || hit.keyword->text == "max iterations" ? before : std::nullopt;
}

void Completion::configure(const LogLine& line) {
  for (const Hit& hit : line.hits.all()) {
    if (hit.keyword->word != Word::kTotal) {
      continue;
    }
    const auto total = configured_total(line.text, hit);
    if (!total) {
      continue;
    }
    const auto known = std::find_if(configured_.begin(), configured_.end(),
                                    [&](const Configured& one) { return one.counter == hit.keyword->of; });
    if (known == configured_.end()) {
      configured_.push_back({hit.keyword->of, total});
    } else if (known->total != total) {
      known->total.reset();
    }
  }
}

std::optional<double> Completion::total_of(const Counter& counter) const {
  if (counter.total) {
    return counter.total;
  }
  const auto known = std::find_if(configured_.begin(), configured_.end(),
                                  [&](const Configured& one) { return one.counter == counter.kind; });
  const bool fits = known != configured_.end() && known->total && counter.last <= *known->total;
  return fits ? known->total : std::nullopt;
}

/// Whether the counter is at the last of `total`, counted from 0 or from 1.
bool Completion::is_last(const Counter& counter, const Pass& pass, double total) {
  const bool from_zero = counter.first == 0 || pass.first == 0;
  return counter.last >= total || (from_zero && counter.last == total - 1);
}

/// Whether an inner loop is at its end, so that no further line of it is due.
bool Completion::is_at_end(const Counter& counter, const Pass& pass) {
  if (pass.reached && counter.last >= *pass.reached) {
    return true;
  }
  if (!counter.total) {
    return !pass.restarted;
  }
  const double next = counter.last + pass.step;
  const bool none_due = pass.step > 0 && (pass.first == 0 ? next >= *counter.total : next > *counter.total);
  return none_due || is_last(counter, pass, *counter.total);
}

/// Whether another run begins in the same log: the epochs fall back, and their total is another one.
bool Completion::begins_run(const Counter& counter, const Pass& pass) {
  return counter.kind == "epoch" && counter.last < pass.value && counter.total && pass.total &&
         counter.total != pass.total;
}

void Completion::begin(const Counter& counter, Pass& pass, const LogLine& line) const {
  pass = {};
  pass.value = pass.first = counter.last;
  pass.total = counter.total;
  pass.seen = counter.seen;
  pass.seen_line = pass.since_line = line.number;
  pass.since_row = rows_;
}

/// Whether this is the only outer loop in the log. Then its last unit means the end even if the loop is repeated: a log
/// that is cut off seldom ends exactly there.
bool Completion::is_only_loop(const Counter& counter) const {
  return counter.is_outer() && std::ranges::none_of(log_.counters, [&](const Counter& one) {
           return &one != &counter && (one.is_outer() || (one.kind == "iteration" && !one.total));
         });
}

void Completion::follow(const Counter& counter, Pass& pass, const LogLine& line) const {
  if (pass.of_earlier_run && counter.seen != pass.seen) {
    begin(counter, pass, line);
    return;
  }
  pass.total = counter.total;
  if (counter.seen != pass.seen) {
    pass.seen = counter.seen;
    pass.seen_line = line.number;
  }
  if (counter.last == pass.value) {
    return;
  }
  if (counter.last > pass.value) {
    pass.step = counter.last - pass.value;
    pass.least_told = std::min(pass.least_told.value_or(pass.told), pass.told);
  } else {
    const auto total = total_of(counter);
    pass.repeats = pass.repeats || (!is_only_loop(counter) && total && pass.value >= *total - 1);
    pass.reached = pass.value;
    pass.first = counter.last;
    pass.restarted = true;
  }
  pass.value = counter.last;
  pass.since_line = line.number;
  pass.since_row = rows_;
  pass.told = 0;
  pass.has_result = false;
  pass.ended = false;
}

void Completion::read(const LogLine& line, const Counters::News& news) {
  ++rows_;
  if (news.is_bar) {
    follow_bar(line, news);
  }
  const bool saves = line.hits.has_any(Word::kSaving, Word::kSaved);  // not of every unit
  const bool result = news.loss || (news.counted && has_value(line)) || line.hits.has(Word::kMetric) ||
                      (news.is_bar && news.bar_done >= news.bar_total) || (news.counted && tells_end_of_epoch(line));
  const bool told = !news.is_bar && !saves && (news.counted || result);
  if (!told && !result && !news.counted) {
    return;
  }
  for (std::size_t i = 0; i < passes_.size(); ++i) {
    if (begins_run(log_.counters[i], passes_[i])) {
      std::ranges::for_each(passes_, [](Pass& one) { one.of_earlier_run = true; });
    }
  }
  for (std::size_t i = 0; i < log_.counters.size(); ++i) {
    const Counter& counter = log_.counters[i];
    if (i == passes_.size()) {
      begin(counter, passes_.emplace_back(), line);
    }
    follow(counter, passes_[i], line);
    passes_[i].told += told ? 1 : 0;
    passes_[i].has_result = passes_[i].has_result || result;
    passes_[i].ended = passes_[i].ended || (counter.kind == "epoch" && news.counted && is_end_of_epoch(line));
  }
}

/// Labels with numbers change as they are drawn; bars of the same length belong to the same loop.
void Completion::follow_bar(const LogLine& line, const Counters::News& news) {
  auto bar = std::find_if(bars_.begin(), bars_.end(), [&](const LastBar& one) { return one.total == news.bar_total; });
  if (bar == bars_.end()) {
    if (bars_.size() == kMostLengths) {
      return;
    }
    bars_.push_back({news.bar_total});
    bar = bars_.end() - 1;
  }
  bar->runs += bar->line == 0 || news.bar_done < bar->done ? 1 : 0;
  bar->done = news.bar_done;
  bar->seconds = news.bar_seconds;
  bar->names_training = is_training_label(news.bar_label);
  bar->of_training = !news.validation_bar && (news.bar_label.empty() || bar->names_training);
  bar->line = line.number;
  bar->row = rows_;
}

/// The outermost of the nested loops with a known end.
std::optional<std::size_t> Completion::outermost() const {
  std::optional<std::size_t> outer;
  for (std::size_t i = 0; i < log_.counters.size(); ++i) {
    const Counter& one = log_.counters[i];
    const auto total = total_of(one);
    const bool once = one.seen == 1 && std::ranges::any_of(log_.counters, [](const Counter& other) {
                        return other.changes > 1;
                      });  // "Round 3/3: augmenting", before the loop
    if (!total || once || one.kind == "batch" || one.kind == "sample") {
      continue;
    }
    const auto order = [&](const Counter& counter, double end) { return std::pair(counter.restarts, end); };
    if (!outer || order(one, *total) < order(log_.counters[*outer], *total_of(log_.counters[*outer]))) {
      outer = i;
    }
  }
  return outer;
}

/// Whether the last unit was done, not only announced: it has as many lines as the units before, and a result.
bool Completion::unit_is_done(std::size_t outer) const {
  const Pass& pass = passes_[outer];
  const bool announced = log_.counters[outer].kind == "epoch" && !pass.has_result;
  return !announced && pass.told >= pass.least_told.value_or(0);
}

bool Completion::counters_are_done(std::size_t outer) const {
  const Counter& counter = log_.counters[outer];
  if (!is_last(counter, passes_[outer], *total_of(counter)) || passes_[outer].repeats) {
    return false;
  }
  if (passes_[outer].ended) {
    return true;
  }
  if (!unit_is_done(outer)) {
    return false;
  }
  for (std::size_t i = 0; i < log_.counters.size(); ++i) {
    const Counter& inner = log_.counters[i];
    if (i == outer || passes_[i].seen_line < passes_[outer].since_line) {
      continue;
    }
    const bool one_epoch_of_unknown = inner.kind == "epoch" && !total_of(inner) && inner.advanced == 0;
    if (one_epoch_of_unknown || !is_at_end(inner, passes_[i])) {
      return false;
    }
  }
  return true;
}

/// Without counters: whether a single bar over the whole run is at its end.
bool Completion::only_bar_is_done() const {
  const bool others = std::any_of(log_.counters.begin(), log_.counters.end(),
                                  [](const Counter& one) { return one.restarts > 0 || one.advanced == 0; });
  const auto longest = std::max_element(bars_.begin(), bars_.end(),
                                        [](const LastBar& a, const LastBar& b) { return a.seconds < b.seconds; });
  if (others || longest == bars_.end() || longest->runs != 1 || !longest->of_training || longest->total < 2) {
    return false;
  }
  const bool nests = std::any_of(bars_.begin(), bars_.end(), [](const LastBar& one) { return one.runs > 1; });
  // A buffered stdout may come after the whole bar.
  const bool counted = std::ranges::any_of(log_.counters, [&](const Counter& one) {
    return one.advanced > 0 && one.last == longest->total - (one.first == 0 ? 1 : 0);
  });
  const bool at_the_end = counted || log_.lines <= longest->line + kMostLinesBehindBar;
  return longest->seconds >= 1 && longest->total <= kMostStepsPerSecond * longest->seconds &&
         (at_the_end || (nests && longest->names_training));
}

bool Completion::is_whole() const {
  if (passes_.size() != log_.counters.size()) {
    return false;
  }
  const auto outer = outermost();
  const std::uint64_t since = outer ? passes_[*outer].since_row : 0;
  const bool open = std::ranges::any_of(
      bars_, [&](const LastBar& one) { return one.done < one.total && one.row >= std::max(since, std::uint64_t{1}); });
  return !open && (outer ? counters_are_done(*outer) : only_bar_is_done());
}

void Completion::finish() {
  for (const LastBar& bar : bars_) {
    log_.open_bar_line = bar.done < bar.total ? std::max(log_.open_bar_line, bar.line) : log_.open_bar_line;
  }
  log_.is_whole = is_whole();
}

}  // namespace unidle::logs::detail
