#include "unidle/report/page/activity.h"

#include <algorithm>
#include <cmath>

#include "unidle/base/units.h"
#include "unidle/report/page/shown.h"

namespace unidle::report {

namespace {

using account::Account;
using enum account::Part;

constexpr std::size_t kColumns = 200;
constexpr double kLeastGap = 0.002;  // of the axis, between two bands

class Binner {
 public:
  Binner(double length_s, std::size_t count) : width_(length_s / static_cast<double>(count)), bins_(count) {}

  /// Spreads `share` of the interval over the bins that it overlaps.
  void add(double from_s, double to_s, std::size_t activity, double share) {
    if (!(to_s > from_s) || !(width_ > 0) || share <= 0) {
      return;
    }
    const auto last = static_cast<double>(bins_.size() - 1);
    const auto first_bin = static_cast<std::size_t>(std::clamp(std::floor(from_s / width_), 0.0, last));
    const auto last_bin = static_cast<std::size_t>(std::clamp(std::floor(to_s / width_), 0.0, last));
    for (std::size_t i = first_bin; i <= last_bin; ++i) {
      const double begin = static_cast<double>(i) * width_;
      const double overlap = std::min(to_s, begin + width_) - std::max(from_s, begin);
      bins_[i][activity] += std::max(0.0, overlap) / width_ * share;
    }
  }

  std::vector<Bin> finish() {
    for (Bin& bin : bins_) {
      double sum = 0;
      for (const double share : bin) {
        sum += share;
      }
      for (double& share : bin) {
        share = sum > 1 ? share / sum : share;
      }
    }
    return std::move(bins_);
  }

 private:
  double width_;
  std::vector<Bin> bins_;
};

double since_start(const Account& account, std::int64_t t_ns) {
  return static_cast<double>(t_ns - account.timeline.begin_ns) * 1e-9;
}

struct Phase {
  std::size_t activity;
  const TimeRanges& ranges;
};

/// Phases outside of the steps.
std::array<Phase, 3> phases_of(const Account& account) {
  return {{{kStartup, account.timeline.startup},
           {kValidate, account.timeline.validate},
           {kCheckpoint, account.timeline.checkpoint}}};
}

const Look& look_of(std::size_t activity) {
  return *std::find_if(looks().begin(), looks().end(), [&](const Look& look) { return look.activity == activity; });
}

}  // namespace

const std::array<Look, kActivityCount>& looks() {
  static constexpr std::array<Look, kActivityCount> kLooks = {{{kCompute, "compute", "compute"},
                                                               {kOptimizer, "optimizer", "optimizer"},
                                                               {kTransfer, "transfer", "transfer"},
                                                               {kSync, "sync", "sync"},
                                                               {kOther, "other", "other"},
                                                               {kInput, "input", "input wait"},
                                                               {kValidate, "validate", "validation"},
                                                               {kCheckpoint, "checkpoint", "checkpoint"},
                                                               {kStartup, "startup", "start-up"}}};
  return kLooks;
}

TimeUnit time_unit(double length_s) {
  if (length_s < 300) {
    return {"s", 1};
  }
  return length_s < 3 * 3600 ? TimeUnit{"min", 60} : TimeUnit{"h", 3600};
}

std::vector<Bin> bins(const Account& account, double length_s, std::size_t count) {
  if (count == 0) {
    return {};
  }
  Binner binner(length_s, count);
  for (const Phase& phase : phases_of(account)) {
    for (const TimeRange& range : phase.ranges.all()) {
      binner.add(since_start(account, range.begin_ns), since_start(account, range.end_ns), phase.activity, 1);
    }
  }
  for (const account::Period& period : account.periods) {
    // Validation after a step is not part of it: the step's own time comes first.
    const double from = since_start(account, period.begin_ns);
    for (std::size_t part = 0; part < account::kPartCount && period.step_s > 0; ++part) {
      binner.add(from, from + period.step_s, part, period.parts[part] / period.step_s);
    }
  }
  return binner.finish();
}

std::vector<Layer> activity_layers(const Account& account, double length_s, const Translator& translator) {
  const std::vector<Bin> shares = bins(account, length_s, kColumns);
  std::vector<Layer> layers;
  for (const Look& look : looks()) {
    Layer layer{translator.word(look.label), look.css, {}};
    for (const Bin& bin : shares) {
      layer.values.push_back(bin[look.activity] > 0.002 ? bin[look.activity] * 100 : 0);
    }
    if (std::any_of(layer.values.begin(), layer.values.end(), [](double value) { return value > 0; })) {
      layers.push_back(std::move(layer));
    }
  }
  return layers;
}

std::vector<Band> phase_bands(const Account& account, double length_s, double unit_s, const Translator& translator) {
  std::vector<Band> bands;
  for (const Phase& phase : phases_of(account)) {
    const Look& look = look_of(phase.activity);
    bool first = true;
    for (const TimeRange& range : phase.ranges.all()) {
      const double from = since_start(account, range.begin_ns) / unit_s;
      const double to = since_start(account, range.end_ns) / unit_s;
      if (!first && (from - bands.back().to) * unit_s < kLeastGap * length_s) {
        bands.back().to = std::max(bands.back().to, to);
      } else {
        bands.push_back({from, to, look.css, translator.word(look.label)});
      }
      first = false;
    }
  }
  return bands;
}

std::string activity_words(const Account& account, const Translator& translator) {
  const account::PhaseTimes& p = account.phases;
  return translator.say(
      "Stacked shares of wall time over the run of {}: start-up {}, training {}, validation {}, checkpoints {}.",
      format_seconds(account.timeline.wall_s()), format_seconds(p.startup), format_seconds(p.train),
      format_seconds(p.validate), format_seconds(p.checkpoint));
}

}  // namespace unidle::report
