#include "unidle/report/scaling.h"

#include <fmt/format.h>

#include <algorithm>

#include "unidle/base/units.h"

namespace unidle::report {

namespace {

/// Losses below this share of what is lost are not worth a word.
constexpr double kWorthAWord = 0.1;
/// Losses in all below this share of a rank's time are noise.
constexpr double kNoise = 0.02;

struct Sides {
  const Summary& fewer;
  const Summary& more;
};

/// Seconds that a rank spends on one sample in a part of the step.
double per_sample(const Summary& run, double step_part_s) {
  return step_part_s * static_cast<double>(run.ranks) / *run.samples_per_step;
}

double own_part(const Summary& run, std::size_t part) {
  const double whole_s = run.step_s[part].value_or(0);
  return part == kCompute ? whole_s - run.rank_wait_s.value_or(0) : whole_s;
}

/// A step's time is less than the rate says: there are gaps between steps.
double between_steps(const Summary& run) {
  const double all_s = static_cast<double>(run.ranks) / run.throughput.training->value;
  return std::max(0.0, all_s - per_sample(run, *run.whole_step_s));
}

std::vector<RankCost> costs_of(const Sides& sides, const Translator& translator) {
  std::vector<RankCost> costs;
  const auto add = [&](std::string part, double fewer_s, double more_s) {
    if (fewer_s > 0 || more_s > 0) {
      costs.push_back({std::move(part), fewer_s, more_s});
    }
  };
  for (std::size_t part = 0; part < kPartCount; ++part) {
    add(part_label(static_cast<Part>(part), translator), per_sample(sides.fewer, own_part(sides.fewer, part)),
        per_sample(sides.more, own_part(sides.more, part)));
    if (part == kCompute) {
      add(translator.say("waits for other ranks"), per_sample(sides.fewer, sides.fewer.rank_wait_s.value_or(0)),
          per_sample(sides.more, sides.more.rank_wait_s.value_or(0)));
    }
  }
  add(translator.say("between steps"), between_steps(sides.fewer), between_steps(sides.more));
  return costs;
}

/// The ratio of the run with more ranks to the one with fewer, over the ratio of the ranks.
experiment::Ratio efficiency_of(const Comparison& c, double ranks) {
  experiment::Ratio gain = *c.training_ratio;
  if (c.a.ranks > c.b.ranks) {
    gain.value = 1 / gain.value;
    gain.interval =
        gain.interval ? std::optional(Interval{1 / gain.interval->high, 1 / gain.interval->low}) : std::nullopt;
  }
  gain.value /= ranks;
  if (gain.interval) {
    gain.interval = Interval{gain.interval->low / ranks, gain.interval->high / ranks};
  }
  return gain;
}

bool is_rated(const Summary& run) {
  return run.throughput.training && run.whole_step_s && run.samples_per_step && *run.samples_per_step > 0;
}

}  // namespace

std::optional<Scaling> scaling_of(const Comparison& c, const Translator& translator) {
  if (c.a.ranks == c.b.ranks || c.different_programs || !c.training_ratio || !is_rated(c.a) || !is_rated(c.b)) {
    return std::nullopt;
  }
  Scaling scaling;
  scaling.a_has_more = c.a.ranks > c.b.ranks;
  const Sides sides = scaling.a_has_more ? Sides{c.b, c.a} : Sides{c.a, c.b};
  scaling.fewer = sides.fewer.ranks;
  scaling.more = sides.more.ranks;
  const auto fewer = static_cast<double>(scaling.fewer);
  const auto more = static_cast<double>(scaling.more);
  scaling.efficiency = efficiency_of(c, more / fewer);
  scaling.costs = costs_of(sides, translator);
  scaling.samples_fewer = *sides.fewer.samples_per_step / fewer;
  scaling.samples_more = *sides.more.samples_per_step / more;
  return scaling;
}

std::string scaling_words(const Scaling& scaling, const Translator& translator) {
  const experiment::Ratio& efficiency = scaling.efficiency;
  const double gain = efficiency.value * static_cast<double>(scaling.more) / static_cast<double>(scaling.fewer);
  return translator.say("{} ranks train {:.2f}x as fast as {}: an efficiency of {} ({} to {}).", scaling.more, gain,
                        scaling.fewer, format_share(efficiency.value), format_share(efficiency.interval->low),
                        format_share(efficiency.interval->high));
}

std::string loss_words(const Scaling& scaling, const Translator& translator) {
  std::vector<RankCost> costs = scaling.costs;
  double all_s = 0;
  double lost_s = 0;
  for (const RankCost& cost : costs) {
    all_s += cost.more_s;
    lost_s += std::max(0.0, cost.lost_s());
  }
  if (lost_s < kNoise * all_s || scaling.efficiency.value >= 1) {
    return "";
  }
  std::ranges::stable_sort(costs, std::greater<>(), &RankCost::lost_s);
  std::string words;
  for (const RankCost& cost : costs) {
    if (cost.lost_s() >= kWorthAWord * lost_s) {
      words += (words.empty() ? "" : translator.word(", ")) +
               translator.say("{} +{} a sample", cost.part, format_seconds(cost.lost_s()));
    }
  }
  return translator.say("With {} ranks instead of {}, a rank needs more time for: {}.", scaling.more, scaling.fewer,
                        words);
}

std::vector<WordRow> scaling_rows(const Comparison& comparison, const Translator& translator) {
  const auto scaling = scaling_of(comparison, translator);
  std::vector<WordRow> rows;
  if (!scaling) {
    return rows;
  }
  RankCost whole{translator.word("whole"), 0, 0};
  const auto add = [&](const RankCost& cost) {
    const double a_s = scaling->a_has_more ? cost.more_s : cost.fewer_s;
    const double b_s = scaling->a_has_more ? cost.fewer_s : cost.more_s;
    rows.push_back({cost.part, {duration_words(a_s), duration_words(b_s), change_words(a_s, b_s)}});
  };
  for (const RankCost& cost : scaling->costs) {
    whole.fewer_s += cost.fewer_s;
    whole.more_s += cost.more_s;
    add(cost);
  }
  add(whole);
  const double a = scaling->a_has_more ? scaling->samples_more : scaling->samples_fewer;
  const double b = scaling->a_has_more ? scaling->samples_fewer : scaling->samples_more;
  rows.push_back({translator.say("samples of a rank per step"), {format_number(a), format_number(b), ""}});
  return rows;
}

}  // namespace unidle::report
