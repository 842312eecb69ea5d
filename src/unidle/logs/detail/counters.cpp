#include "unidle/logs/detail/counters.h"

#include <algorithm>
#include <cmath>

#include "unidle/logs/detail/numbers.h"

namespace unidle::logs::detail {

namespace {

constexpr std::size_t kMostBars = 16;
constexpr std::size_t kMostUses = 64;
constexpr std::size_t kLongestLabel = 60;
constexpr double kMostCount = 1e15;

constexpr std::array<std::string_view, 7> kKindNames = {"epoch", "step",  "iteration", "episode",
                                                        "round", "batch", "sample"};

constexpr double kFewestToFall = 3;

/// Drops digits, so that "Epoch 3/10:  45%" and "Epoch 4/10:  50%" are runs of the same bar, and so is a label whose
/// numbers change as it is drawn.
std::string without_figures(std::string_view label) {
  std::string text;
  for (const char c : label.substr(0, kLongestLabel)) {
    const bool again = c == ' ' && text.ends_with(' ');
    if (!is_digit(c) && c != '.' && !again && static_cast<unsigned char>(c) >= 0x20) {
      text += c;
    }
  }
  return text;
}

/// The first integer in a label: the epoch, not its loss.
std::string_view whole_number_in(std::string_view label) {
  std::size_t at = 0;
  while (at < label.size()) {
    if (!is_digit(label[at])) {
      ++at;
      continue;
    }
    const std::size_t end = std::min(label.find_first_not_of("0123456789.", at), label.size());
    const std::string_view number = label.substr(at, end - at);
    if (number.find('.') == std::string_view::npos) {
      return number;
    }
    at = end;
  }
  return {};
}

/// "[ Train | 007/100 ]"; not "Train | 100/391 | loss: 0.5", which counts steps.
bool is_bracketed(std::string_view line, const Hit& hit) {
  const std::string_view before = trimmed(line.substr(0, hit.begin));
  std::string_view rest = line.substr(hit.end);
  rest.remove_prefix(std::min(rest.find_first_not_of(" 0123456789/"), rest.size()));
  return before.ends_with('[') && rest.starts_with(']');
}

}  // namespace

bool is_other_numbering(double last, double value) {
  constexpr double kClose = 0.95;
  return value < last && last >= kFewestToFall && (value == last - 1 || value > last * kClose);
}

Counters::Kind Counters::kind_of(Word word) {
  switch (word) {
    case Word::kEpoch: return kEpoch;
    case Word::kStep: return kStep;
    case Word::kIteration: return kIteration;
    case Word::kEpisode: return kEpisode;
    case Word::kRound: return kRound;
    case Word::kBatch: return kBatch;
    case Word::kTrain: return kEpoch;
    case Word::kSamples: return kSample;
    default: return kKinds;
  }
}

/// The log's counter of a kind, created with `value` if it does not exist.
Counter& Counters::counter(Kind kind, double value, const Moment& moment) {
  if (places_[kind] == 0) {
    Counter fresh;
    fresh.kind = kKindNames[kind];
    fresh.first = fresh.last = value;
    fresh.first_had_loss = moment.with_loss;
    fresh.first_ns = fresh.changed_ns = moment.now_ns;
    fresh.train_s_first = fresh.train_s_changed = moment.train_s;
    log_.counters.push_back(fresh);
    places_[kind] = log_.counters.size();
  }
  return log_.counters[places_[kind] - 1];
}

bool Counters::count(Kind kind, double value, std::optional<double> total, const Moment& moment) {
  if (!(value < kMostCount)) {
    return false;
  }
  Counter& one = counter(kind, value, moment);
  const bool again = one.seen > 0 && value <= one.last && value <= one.first;
  if (value != one.last && !is_other_numbering(one.last, value)) {
    one.restarts += value < one.last ? 1 : 0;
    ++one.changes;
    one.advanced += value > one.last ? value - one.last : value;
    one.last = value;
    one.changed_ns = moment.now_ns;
    one.train_s_changed = moment.train_s;
  }
  if (total && *total >= value && *total > 0) {
    one.total = total;
  }
  ++one.seen;
  one.last_had_loss = moment.with_loss;
  one.last_ns = moment.now_ns;
  one.train_s_last = moment.train_s;
  return again;
}

std::optional<Count> Counters::count_at(const LogLine& line, const Hit& hit) {
  auto seen = count_after(line.text, hit.end);
  if (!seen && static_cast<signed char>(hit.keyword->text.front()) < 0) {
    seen = count_before(line.text, hit.begin);
  }
  if (seen && hit.keyword->word == Word::kTrain) {
    if (!seen->inner) {
      const bool epochs = hit.keyword->text.ends_with('|') && seen->total &&
                          is_bracketed(line.text, hit);  // "[ Train | 007/100 ] loss = 0.5"
      return epochs ? seen : std::nullopt;               // "train: 0.5" is a loss
    }
    seen->inner_is_samples = false;  // timm: "Train: 3 [  50/300 ( 17%)]"
  }
  return seen;
}

void Counters::read_counts(const LogLine& line, const Moment& moment, News& news) {
  std::uint32_t passed = 0;  // "Epoch: [3][120/5000]" has two counts
  std::array<bool, kKinds> told{};
  for (const Hit& hit : line.hits.all()) {
    const Kind kind = kind_of(hit.keyword->word);
    if (kind == kKinds || hit.begin < passed || told[kind] || is_of_earlier(line.text, hit.begin)) {
      continue;
    }
    const auto seen = count_at(line, hit);
    const bool is_setting = seen && seen->plural && !seen->total && !news.counted;  // "epochs: 150"
    if (!seen || is_setting) {
      continue;
    }
    news.counted = true;
    told[kind] = true;
    passed = hit.end;
    const double before = places_[kind] == 0 ? 0 : log_.counters[places_[kind] - 1].last;
    const bool outermost = kind == kEpoch || places_[kEpoch] == 0;
    if (count(kind, seen->value, seen->total, moment) && outermost) {
      news.at_first_again = true;
      news.fell_back = seen->value < before;
    }
    if (seen->inner) {
      count(seen->inner_is_samples ? kSample : kStep, *seen->inner, seen->inner_total, moment);
      news.steps = seen->inner;
      news.steps_are_samples = seen->inner_is_samples;
    } else if (kind != kEpoch && kind != kEpisode && kind != kRound && !news.steps) {
      news.steps = seen->value;
      news.steps_are_samples = kind == kSample;
    }
  }
}

bool Counters::read_losses(const LogLine& line) {
  bool finite = false;
  bool bad = false;
  for (const Hit& hit : line.hits.all()) {
    if (hit.keyword->word != Word::kLoss) {
      continue;
    }
    if (const auto is_finite = finite_after(line.text, hit.end)) {
      (*is_finite ? finite : bad) = true;
    }
  }
  if (!finite && !bad) {
    return false;
  }
  ++log_.loss_lines;
  log_.bad_loss_lines += bad ? 1 : 0;
  const auto here = [&] { return Quote{quotable(line.text), line.number, log_.progress_lines}; };
  if (bad && !log_.bad_loss) {
    log_.bad_loss = here();
  }
  if (finite) {
    log_.trailing_bad_loss_lines = 0;
  } else if (log_.trailing_bad_loss_lines++ == 0) {
    log_.hopeless_loss = here();
  }
  return true;
}

void Counters::close(const OpenBar& open) {
  // Bars without a label belong to the same loop if their lengths are equal.
  auto use = std::find_if(log_.bars.begin(), log_.bars.end(), [&](const BarUse& one) {
    return one.label == open.label && one.validation == open.validation &&
           (!open.label.empty() || one.last_total == open.total);
  });
  if (use == log_.bars.end()) {
    if (log_.bars.size() >= kMostUses) {
      return;
    }
    log_.bars.push_back({.label = open.label, .validation = open.validation});
    use = log_.bars.end() - 1;
  }
  ++use->runs;
  use->seconds += open.elapsed_s;
  use->steps += open.done;
  use->counts_samples = open.counts_samples;
  use->last_done = open.done;
  use->last_total = open.total;
}

/// Whether the bar moved since it was last drawn.
bool Counters::bar(const Bar& seen, bool validation) {
  const std::string_view as_drawn = seen.label.substr(0, kLongestLabel);
  auto open = std::find_if(open_bars_.begin(), open_bars_.end(), [&](const OpenBar& one) {
    return one.as_drawn == as_drawn && one.validation == validation;
  });
  if (open == open_bars_.end()) {
    const std::string label = without_figures(seen.label);
    open = std::find_if(open_bars_.begin(), open_bars_.end(),
                        [&](const OpenBar& one) { return one.label == label && one.validation == validation; });
    if (open == open_bars_.end()) {
      if (open_bars_.size() < kMostBars) {
        open_bars_.push_back(
            {label, std::string(as_drawn), seen.total, seen.done, seen.elapsed_s, validation, seen.counts_samples});
      }
      return true;
    }
  }
  const bool drawn_alike = open->as_drawn == as_drawn;
  const bool of_one_unit = drawn_alike || whole_number_in(open->as_drawn) == whole_number_in(as_drawn);
  const bool further = seen.done > open->done || (seen.done == open->done && (drawn_alike || seen.done < seen.total));
  const bool same_run = of_one_unit && further && seen.elapsed_s >= open->elapsed_s && seen.total == open->total;
  const bool moved = !same_run || seen.done > open->done;
  if (!same_run) {
    close(*open);
  }
  open->as_drawn = as_drawn;
  open->total = seen.total;
  open->done = seen.done;
  open->elapsed_s = seen.elapsed_s;
  open->counts_samples = seen.counts_samples;
  return moved;
}

Counters::News Counters::read(const LogLine& line, std::optional<std::int64_t> now_ns) {
  News news;
  const bool names_loss = line.hits.has(Word::kLoss);
  const Moment moment{now_ns, phases_.train_s(), names_loss};
  if (line.hits.has_any(Word::kEpoch, Word::kStep, Word::kIteration, Word::kEpisode, Word::kRound, Word::kBatch,
                        Word::kTrain, Word::kSamples)) {
    read_counts(line, moment, news);
  }
  news.loss = names_loss && read_losses(line);
  if (news.loss && !news.counted) {
    auto seen = count_of_keras(line.text);
    seen = seen ? seen : count_in_brackets(line.text);
    if (seen) {
      count(kStep, seen->value, seen->total, moment);
      news.counted = true;
      news.steps = seen->value;
    }
  }
  if (line.bar_at != std::string_view::npos) {
    if (const auto seen = read_bar(line.text, line.bar_at); seen) {
      news.is_bar = true;
      news.validation_bar = line.hits.has(Word::kValidation);
      news.bar_moved = bar(*seen, news.validation_bar);
      news.bar_label = seen->label;
      news.bar_done = seen->done;
      news.bar_total = seen->total;
      news.bar_seconds = seen->elapsed_s;
      if (const auto epoch = count_of_yolo(seen->label)) {
        count(kEpoch, epoch->value, epoch->total, moment);
        news.counted = true;
      }
    }
  }
  return news;
}

void Counters::finish() {
  for (const OpenBar& open : open_bars_) {
    close(open);
  }
  open_bars_.clear();
}

}  // namespace unidle::logs::detail
