#include "unidle/logs/detail/stated.h"

#include <algorithm>
#include <cmath>

#include "unidle/base/characters.h"
#include "unidle/logs/detail/numbers.h"
#include "unidle/logs/detail/progress.h"

namespace unidle::logs::detail {

namespace {

/// "time" alone may mean anything, most often the time since the start. It is a step's time if the line also has an
/// average, a rate or the wait for data, or if it is in milliseconds.
bool is_of_a_step(const Meter& time, bool with_data) {
  return with_data || time.average_s || time.samples_per_s || time.in_ms;
}

/// The wait for data is part of the step, apart from rounding and means over different steps.
bool fits_in(double data_s, double step_s) { return data_s <= 1.5 * step_s; }

/// ESPnet calls the wait for one of a step's batches iter_time, and prints it beside forward_time.
bool is_of_a_batch(const LogLine& line, const Hit& hit) {
  return hit.keyword->text == "iter_time" && line.text.find("forward_time") != std::string_view::npos;
}

std::optional<Meter> meter_of(const LogLine& line, Word word) {
  for (const Hit& hit : line.hits.all()) {
    if (hit.keyword->word != word || is_of_a_batch(line, hit)) {
      continue;
    }
    if (auto meter = meter_after(line.text, hit.end)) {
      if (hit.keyword->text == "step_avg") {
        meter->average_s = meter->value_s;
      }
      return meter;
    }
  }
  return std::nullopt;
}

/// PySlowFast's summary of an epoch reads the timers of a step while they run.
bool is_of_no_step(const LogLine& line) {
  return line.hits.has(Word::kStepTime) && line.text.find("\"_type\": \"train_epoch\"") != std::string_view::npos;
}

/// "time" as a word of its own; not "Total time" and similar.
std::optional<Meter> plain_time(const LogLine& line) {
  for (const Hit& hit : line.hits.all()) {
    const bool is_time = hit.keyword->word == Word::kDuration && hit.keyword->text == "time";
    const bool alone = hit.begin < 2 || line.text[hit.begin - 1] != ' ' || !is_letter(line.text[hit.begin - 2]);
    if (is_time && alone) {
      if (auto meter = meter_after(line.text, hit.end)) {
        return meter;
      }
    }
  }
  return std::nullopt;
}

/// "16ms/step" of Keras as a rate.
std::optional<double> rate_of_keras(const LogLine& line, const Hit& hit) {
  const std::string_view unit = hit.keyword->text;
  const auto time = unit.ends_with("s/step") ? value_before(line.text, hit.begin) : std::nullopt;
  const double scale = unit.starts_with("ms") ? 1e-3 : unit.starts_with("us") ? 1e-6 : 1;
  return time && *time > 0 ? std::optional(1 / (*time * scale)) : std::nullopt;
}

/// Whether the position is inside a bar, "[00:01<00:00, 5000.0 examples/s]", which may belong to any loop.
bool is_in_bar(std::string_view line, std::size_t at) {
  const std::size_t bracket = line.substr(0, at).rfind('[');
  if (bracket == std::string_view::npos) {
    return false;
  }
  std::string_view clock = line.substr(bracket + 1, at - bracket - 1);
  return take_digits(clock) && clock.starts_with(":");
}

}  // namespace

bool averages_training(const LogLine& line) {
  const Hit* time = line.hits.first(Word::kStepTime);
  return time != nullptr && time->keyword->text == "step_avg";
}

void Stated::Mean::add(double value, double steps) {
  if (!first_) {
    first_ = value;
  } else {
    sum_ += value * steps;
    steps_ += steps;
  }
}

std::optional<double> Stated::Mean::value() const { return steps_ > 0 ? std::optional(sum_ / steps_) : first_; }

void Stated::Middle::add(double value, double steps) {
  constexpr double kWidth = 0.005;
  Bin& bin = bins_[static_cast<int>(std::floor(std::log(value) / kWidth))];
  bin.steps += steps;
  bin.sum += value * steps;
}

std::optional<double> Stated::Middle::value() const {
  double all = 0;
  for (const auto& [place, bin] : bins_) {
    all += bin.steps;
  }
  double below = 0;
  for (const auto& [place, bin] : bins_) {
    below += bin.steps;
    if (below >= all / 2) {
      return bin.sum / bin.steps;
    }
  }
  return std::nullopt;
}

std::optional<Meter> Stated::step_in(const LogLine& line, const std::optional<Meter>& data) {
  if (auto step = meter_of(line, Word::kStepTime)) {
    return step;
  }
  if (auto update = meter_of(line, Word::kUpdateTime); update && data) {
    update->value_s += data->value_s;
    update->average_s.reset();
    return update;
  }
  auto step = plain_time(line);
  return step && is_of_a_step(*step, data && fits_in(data->value_s, step->value_s)) ? step : std::nullopt;
}

std::optional<Stated::Times> Stated::times_in(const LogLine& line) {
  auto data = meter_of(line, Word::kDataTime);
  const auto step = step_in(line, data);
  if (!step || step->value_s <= 0 || is_of_no_step(line)) {
    return std::nullopt;
  }
  if (data && !fits_in(data->value_s, step->value_s)) {
    data.reset();
  }
  Times times;
  times.averages = step->average_s && (!data || data->average_s);
  times.step_s = times.averages ? *step->average_s : step->value_s;
  if (data) {
    times.data_s = times.averages ? *data->average_s : data->value_s;
  }
  if (step->samples_per_s) {
    times.batch = *step->samples_per_s * step->value_s;
  }
  return times;
}

Stated::Rates Stated::rates_in(const LogLine& line, const Counters::News& news) {
  Rates rates;
  const bool tells_progress = news.counted || news.loss;
  for (const Hit& hit : line.hits.all()) {
    if (is_in_bar(line.text, hit.begin) && (!tells_progress || hit.keyword->word == Word::kStepRate)) {
      continue;  // the bar's clock is more reliable
    }
    const auto beside = [&](bool* per_device = nullptr) {
      return rate_beside(line.text, hit.begin, hit.end, per_device);
    };
    const auto after = [&](bool* per_device = nullptr) {
      return rate_after(line.text, hit.begin, hit.end, per_device);
    };
    switch (hit.keyword->word) {
      case Word::kSampleRate: rates.samples = rates.samples ? rates.samples : beside(); break;
      case Word::kSampleRateKey: rates.samples = rates.samples ? rates.samples : after(); break;
      case Word::kStepRate:
        if (!rates.steps) {
          rates.steps = hit.keyword->text.ends_with("s/step") ? rate_of_keras(line, hit) : beside();
        }
        break;
      case Word::kTokenRate: rates.tokens = rates.tokens ? rates.tokens : beside(&rates.tokens_per_device); break;
      case Word::kTokenRateKey: rates.tokens = rates.tokens ? rates.tokens : after(&rates.tokens_per_device); break;
      default: break;
    }
  }
  // torchtitan's "tps: 3,200  tflops: 100.0  mfu: 33%" is per device.
  const bool titan = line.hits.has(Word::kTokenRateKey) && line.text.find("mfu:") != std::string_view::npos;
  rates.tokens_per_device = rates.tokens_per_device || titan;
  return rates;
}

/// "global batch size: 64", "Total train batch size (w. parallel, distributed & accumulation) = 64"
std::optional<double> Stated::batch_in(const LogLine& line) {
  const Hit* hit = line.hits.first(Word::kGlobalBatch);
  if (hit == nullptr) {
    return std::nullopt;
  }
  const std::size_t remark = line.text.substr(hit->end).starts_with(" (w.") ? line.text.find(')', hit->end) : hit->end;
  const auto batch = remark == std::string_view::npos
                         ? std::nullopt
                         : value_after(line.text, remark == hit->end ? remark : remark + 1);
  return batch && *batch >= 1 && *batch < 1e12 ? batch : std::nullopt;
}

void Stated::move_to(std::optional<double> count) {
  steps_ = 1;
  if (!count) {
    return;
  }
  if (count_ && is_other_numbering(*count_, *count)) {
    steps_ = 0;
    return;
  }
  if (!count_) {
    first_is_ = *count == 0 ? 1 : 0;
  } else if (*count < *count_) {  // another epoch
    steps_ = *count + first_is_;
    epoch_steps_ = epoch_step_s_ = epoch_data_s_ = 0;
  } else {
    steps_ = *count - *count_;  // nothing if another rank reports the same step
  }
  count_ = count;
}

/// Converts averages since the start of the epoch to averages since the previous line.
Stated::Times Stated::since_last(const Times& averages) {
  const double all = count_.value_or(0) + first_is_;
  const double steps = all - epoch_steps_;
  if (!count_ || steps <= 0) {
    return averages;
  }
  Times times = averages;
  times.step_s = (averages.step_s * all - epoch_step_s_) / steps;
  if (times.data_s) {
    times.data_s = (*averages.data_s * all - epoch_data_s_) / steps;
  }
  epoch_steps_ = all;
  epoch_step_s_ = averages.step_s * all;
  epoch_data_s_ = averages.data_s.value_or(0) * all;
  return times;
}

void Stated::add_times(const LogLine& line, Times times) {
  if (times.averages) {
    times = since_last(times);
    averaged_step_s_.add(times.step_s, steps_);
  } else {
    step_s_.add(times.step_s, weight_);
    each_step_s_.add(times.step_s, steps_);
    leaves_out_ = leaves_out_ || steps_ > 1;
  }
  ++stated_.lines;
  stated_.seconds += counts_steps_ ? times.step_s * steps_ : 0;
  if (times.data_s) {
    fed_step_s_.add(times.step_s, steps_);
    data_s_.add(*times.data_s, steps_);
    if (!stated_.data_line) {
      stated_.data_line = Quote{quotable(line.text), line.number, 0};
    }
  }
}

void Stated::Rate::add(const std::optional<double>& rate, bool tells_progress, double steps) {
  if (rate) {
    (tells_progress ? with_progress : alone).add(*rate, steps);
  }
}

std::optional<double> Stated::Rate::value() const {
  const auto value = with_progress.value();
  return value ? value : alone.value();
}

void Stated::add_rates(const Rates& rates, bool tells_progress) {
  samples_per_s_.add(rates.samples, tells_progress, weight_);
  steps_per_s_.add(rates.steps, tells_progress, weight_);
  tokens_per_s_.add(rates.tokens, tells_progress, weight_);
  if (rates.tokens) {
    stated_.tokens_per_device = rates.tokens_per_device;
  }
}

void Stated::read(const LogLine& line, const Counters::News& news, bool training) {
  const auto batch = batch_in(line);
  const auto times = training ? times_in(line) : std::nullopt;
  const Rates rates = training ? rates_in(line, news) : Rates();
  if (batch && !times) {
    stated_.batch = batch;
  }
  if (!times && !rates.samples && !rates.steps && !rates.tokens) {
    return;
  }
  counts_steps_ = !news.steps_are_samples;
  move_to(news.steps);
  weight_ = steps_ > 0 ? steps_ : weight_;
  if (times) {
    add_times(line, *times);
    if (const auto each = batch ? batch : times->batch) {
      batch_.add(*each, steps_);
    }
  }
  add_rates(rates, news.counted || news.loss);
}

StatedSteps Stated::result() const {
  StatedSteps result = stated_;
  const auto alone = leaves_out_ ? step_s_.value() : each_step_s_.value();
  for (const auto& step_s : {fed_step_s_.value(), averaged_step_s_.value(), alone}) {
    if (!result.step_s && step_s && *step_s > 0) {
      result.step_s = step_s;
    }
  }
  if (const auto step_s = fed_step_s_.value(); step_s && *step_s > 0) {
    result.data_share = std::clamp(*data_s_.value() / *step_s, 0.0, 1.0);
  }
  result.samples_per_s = samples_per_s_.value();
  result.steps_per_s = steps_per_s_.value();
  result.tokens_per_s = tokens_per_s_.value();
  if (const auto batch = batch_.value()) {
    result.batch = batch;
  }
  return result;
}

}  // namespace unidle::logs::detail
