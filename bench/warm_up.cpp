// How far measured gains are from planted ones for other rules of warm-up: how many first steps are left out.
//
// Two settings are simulated as four pairs of runs, the second faster by a known gain. Steps vary by 5 %, neighbours
// alike. The first steps of both take another time, to which the gain does not apply: they allocate and choose
// algorithms, compile, or find the loader's queue filled. Rates, pairs and intervals are those of `unidle compare`.
// Deterministic. The peers are the other rules.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "unidle/account/rate.h"
#include "unidle/account/steps.h"
#include "unidle/base/clock.h"
#include "unidle/base/stats.h"
#include "unidle/experiment/configurations.h"
#include "unidle/experiment/ratio.h"
#include "unidle/telemetry/host.h"

namespace {

using namespace unidle;

constexpr std::int64_t kStep_ns = 20 * kNsPerMs;
constexpr double kNoise = 0.05;
constexpr double kLikeTheLast = 0.7;
const int kPairs = experiment::ConfigurationTurns{}.runs;
constexpr int kTrials = 20;
constexpr std::array kGains = {1.0, 1.1, 1.5, 3.0};

constexpr std::array<std::size_t, 5> kSteps = {12, 20, 30, 60, 200};

struct Start {
  const char* name;
  std::size_t steps;
  double times;  // as long as another step of the first setting
};
constexpr std::array kStarts = {Start{"none", 0, 1}, Start{"first step 50 times", 1, 50},
                                Start{"first 3 steps 10 times", 3, 10}, Start{"first 10 steps 3 times", 10, 3},
                                Start{"first 8 steps a third: a filled queue", 8, 0.33}};

struct Rule {
  const char* name;
  std::size_t (*first_counted)(std::size_t steps);
};
constexpr std::array kRules = {
    Rule{"a quarter, 1 to 10", account::warm_up_steps},
    Rule{"1", [](std::size_t) -> std::size_t { return 1; }},
    Rule{"5", [](std::size_t) -> std::size_t { return 5; }},
    Rule{"10", [](std::size_t) -> std::size_t { return 10; }},
    Rule{"a quarter", [](std::size_t steps) { return std::max<std::size_t>(1, steps / 4); }},
    Rule{"a half, 1 to 10", [](std::size_t steps) { return std::clamp<std::size_t>(steps / 2, 1, 10); }},
};

std::vector<record::Step> run_of(std::size_t count, const Start& start, double gain, std::mt19937_64& random) {
  std::normal_distribution<double> normal;
  std::vector<record::Step> steps(count);
  double deviation = normal(random);
  std::int64_t t_ns = 0;
  for (std::size_t i = 0; i < count; ++i) {
    deviation = kLikeTheLast * deviation + std::sqrt(1 - kLikeTheLast * kLikeTheLast) * normal(random);
    const double times = (i < start.steps ? start.times : 1 / gain) * std::exp(kNoise * deviation);
    steps[i].process = 1;
    steps[i].index = static_cast<std::int64_t>(i);
    steps[i].t_ns = t_ns;
    steps[i].duration_ns = std::llround(times * static_cast<double>(kStep_ns));
    steps[i].samples = 8;
    t_ns += steps[i].duration_ns;
  }
  return steps;
}

std::optional<experiment::SampledRate> rate_of(const std::vector<record::Step>& steps, const Rule& rule,
                                               std::uint64_t seed) {
  account::Timeline timeline;
  timeline.process = 1;
  timeline.steps = steps;
  timeline.end_ns = steps.back().t_ns + steps.back().duration_ns;
  timeline.end_counted = steps.size();
  timeline.first_counted = std::min(rule.first_counted(steps.size()), steps.size());
  timeline.rated = timeline.first_counted < timeline.end_counted;
  const auto found = account::throughput(timeline, account::make_periods(timeline), seed).training;
  return found ? std::optional(experiment::SampledRate{found->value, found->draws}) : std::nullopt;
}

/// What a rule makes of many comparisons.
struct Score {
  std::vector<double> off;   // |measured / planted - 1|
  std::vector<double> wide;  // the interval
  int with_interval = 0;
  int held = 0;  // the interval contains the planted gain
  int all = 0;

  void add(const std::optional<experiment::Ratio>& ratio, double gain) {
    ++all;
    if (!ratio || !ratio->interval) {
      return;
    }
    ++with_interval;
    off.push_back(std::abs(ratio->value / gain - 1));
    wide.push_back((ratio->interval->high - ratio->interval->low) / gain);
    held += ratio->interval->low <= gain && gain <= ratio->interval->high ? 1 : 0;
  }
};

Score score_of(const Rule& rule, std::size_t count, const Start& start) {
  Score score;
  std::uint64_t seed = 0;
  for (const double gain : kGains) {
    for (int trial = 0; trial < kTrials; ++trial) {
      std::mt19937_64 random(++seed);  // the same runs for each rule
      std::vector<experiment::PairOfRates> pairs;
      for (int i = 0; i < kPairs; ++i) {
        const auto a = rate_of(run_of(count, start, 1, random), rule, random());
        const auto b = rate_of(run_of(count, start, gain, random), rule, random());
        if (a && b) {
          pairs.push_back({*a, *b});
        }
      }
      score.add(experiment::ratio_of(pairs), gain);
    }
  }
  return score;
}

std::string in_words(const Score& score) {
  if (score.with_interval < score.all) {
    return "no interval";
  }
  return fmt::format("off by {:5.1f} %, {:5.1f} % wide, holds the gain in {:3.0f} %", 100 * median(score.off),
                     100 * median(score.wide), 100.0 * score.held / score.all);
}

}  // namespace

int main(int count, char** words) {
  const bool as_json = count > 1 && std::strcmp(words[1], "--json") == 0;
  std::map<std::string, std::vector<double>> off;  // of each rule, over all cases
  for (const std::size_t steps : kSteps) {
    for (const Start& start : kStarts) {
      for (const Rule& rule : kRules) {
        const Score score = score_of(rule, steps, start);
        off[rule.name].insert(off[rule.name].end(), score.off.begin(), score.off.end());
        if (!as_json) {
          fmt::print("{:4} steps  {:39} {:19} {}\n", steps, start.name, rule.name, in_words(score));
        }
      }
    }
  }
  std::map<std::string, double> means;
  for (const auto& [name, values] : off) {
    means[name] = std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  }
  const double ours = means.extract(kRules[0].name).mapped();
  if (as_json) {
    fmt::print("{}\n", nlohmann::json{{"name", "warm_up"},
                                      {"unit", "share that measured gains are off"},
                                      {"ours", ours},
                                      {"peers", means},
                                      {"ratio", ours / means.at("10")},
                                      {"machine", telemetry::read_host_facts().cpu_model}}
                           .dump());
  }
}
