#include "unidle/report/timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "unidle/base/units.h"
#include "unidle/report/chart.h"

namespace unidle::report {

namespace {

using account::Account;
using enum account::Part;

constexpr double kBar = 5;  // picture units, with a gap of one
constexpr double kPitch = 6;

struct Look {
  std::size_t activity;
  const char* css;
  const char* label;
};
// From the bottom up: work, then waiting, then phases outside of the steps.
constexpr std::array<Look, kActivityCount> kLooks = {{{kCompute, "compute", "compute"},
                                                      {kOptimizer, "optimizer", "optimizer"},
                                                      {kTransfer, "transfer", "transfer"},
                                                      {kSync, "sync", "sync"},
                                                      {kOther, "other", "other"},
                                                      {kInput, "input", "input wait"},
                                                      {kValidate, "validate", "validation"},
                                                      {kCheckpoint, "checkpoint", "checkpoint"},
                                                      {kStartup, "startup", "start-up"}}};

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

void draw_bands(Svg& svg, const Account& account, const Scale& x, double top) {
  for (const Phase& phase : phases_of(account)) {
    const auto look =
        std::find_if(kLooks.begin(), kLooks.end(), [&](const Look& l) { return l.activity == phase.activity; });
    for (const TimeRange& range : phase.ranges.all()) {
      const double from = x.at(since_start(account, range.begin_ns));
      const double to = x.at(since_start(account, range.end_ns));
      svg.rect(from, top, std::max(1.0, to - from), 5, look->css);
    }
  }
}

std::string describe(const Account& account, const Translator& translator) {
  const account::PhaseTimes& p = account.phases;
  return translator.say(
      "Stacked shares of wall time over the run of {}: start-up {}, training {}, validation {}, checkpoints {}.",
      format_seconds(account.timeline.wall_s()), format_seconds(p.startup), format_seconds(p.train),
      format_seconds(p.validate), format_seconds(p.checkpoint));
}

std::string draw_timeline(const Account& account, double length_s, double width, double height, const std::string& id,
                          const std::string& title, const Translator& translator) {
  const TimeUnit unit = time_unit(length_s);
  const Frame frame{46, width - 10, 34, height - 38};
  const auto count = static_cast<std::size_t>((frame.right - frame.left) / kPitch);
  const double right = frame.left + static_cast<double>(count) * kPitch;
  const Scale seconds_scale{0, length_s, frame.left, right};
  const Scale y{0, 1, frame.bottom, frame.top};
  Svg svg(width, height, id, title, describe(account, translator));
  draw_y_axis(svg, {frame.left, right, frame.top, frame.bottom}, {0, 100, frame.bottom, frame.top},
              translator.say("% of the time"), false);
  draw_x_axis(svg, {frame.left, right, frame.top, frame.bottom}, {0, length_s / unit.seconds, frame.left, right},
              translator.say("wall time ({})", unit.name));
  draw_bands(svg, account, seconds_scale, frame.top - 11);
  const std::vector<Bin> shares = bins(account, length_s, count);
  std::vector<double> base(count, 0.0);
  for (const Look& look : kLooks) {
    std::string data;
    for (std::size_t i = 0; i < count; ++i) {
      const double share = shares[i][look.activity];
      if (share > 0.002) {
        const double top = y.at(base[i] + share);
        data += rect_data(frame.left + static_cast<double>(i) * kPitch + 0.5, top, kBar, y.at(base[i]) - top);
        base[i] += share;
      }
    }
    svg.shape(data, look.css);
  }
  return svg.str();
}

}  // namespace

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

std::string timeline_legend(const Translator& translator) {
  std::vector<LegendEntry> entries;
  for (const Look& look : kLooks) {
    entries.push_back({look.css, translator.word(look.label)});
  }
  return legend(entries);
}

std::string timeline_figure(const Account& account, double length_s, const std::string& id, const std::string& title,
                            const std::string& legend_html, const Translator& translator) {
  return figure_html(title, legend_html, draw_timeline(account, length_s, kFullWidth, 250, id + "w", title, translator),
                     draw_timeline(account, length_s, kNarrowWidth, 210, id + "n", title, translator), true);
}

}  // namespace unidle::report
