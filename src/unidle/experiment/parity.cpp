#include "unidle/experiment/parity.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "unidle/base/units.h"
#include "unidle/experiment/metric_names.h"
#include "unidle/knobs/knob.h"
#include "unidle/language/translator.h"

namespace unidle::experiment {

namespace {

constexpr double kSameArithmetic = 0.02;
constexpr double kOtherArithmetic = 0.05;
constexpr double kOfFall = 0.01;
constexpr double kStandardErrors = 4;
constexpr double kPsnrDb = 0.1;
constexpr double kMetric = 0.02;
/// Noise above this share of the loss hides differences that matter.
constexpr double kTooCoarse = 0.25;
/// A difference of exactly the band is not a breach, whatever the rounding.
constexpr double kRounding = 1e-9;

double loss_band(Demand demand) { return demand == Demand::kSame ? kSameArithmetic : kOtherArithmetic; }

Measure not_comparable(std::string name, std::string why) {
  Measure measure;
  measure.name = std::move(name);
  measure.why = std::move(why);
  return measure;
}

Measure not_finite(const std::string& name, const Translator& translator) {
  Measure measure = not_comparable(name, translator.say("{} stopped being a finite number", name));
  measure.verdict = Verdict::kWorse;
  measure.judged = true;
  measure.held = false;
  return measure;
}

Measure side_by_side(std::string name, const Reading& a, const Reading& b) {
  Measure measure;
  measure.name = std::move(name);
  measure.samples = std::min(a.samples, b.samples);
  measure.a = a.value;
  measure.b = b.value;
  measure.verdict = Verdict::kEqual;
  return measure;
}

/// `worse`: by how much B is worse.
void judge(Measure& measure, double worse, double allowed) {
  measure.judged = true;
  measure.allowed = allowed;
  const double limit = allowed * (1 + kRounding);
  measure.verdict = worse > limit ? Verdict::kWorse : worse < -limit ? Verdict::kBetter : Verdict::kEqual;
  measure.held = measure.verdict != Verdict::kWorse;
}

Measure compare_loss(const Learned& before, const Learned& after, Demand demand, const Spread& by_chance,
                     const Translator& translator) {
  if (!before.loss || !after.loss) {
    const std::string& why = before.why_no_loss.empty() ? after.why_no_loss : before.why_no_loss;
    return not_comparable("loss", translator.word(why.empty() ? "no loss was recorded on both sides" : why));
  }
  if (!std::isfinite(before.loss->value)) {
    return not_comparable("loss", translator.say("the loss to compare with is not a finite number"));
  }
  if (!std::isfinite(after.loss->value)) {
    return not_finite("loss", translator);
  }
  Measure measure = side_by_side("loss", *before.loss, *after.loss);
  if (demand == Demand::kFinite) {
    return measure;
  }
  const double scale = std::abs(measure.a);
  const double band = std::max(loss_band(demand) * scale, kOfFall * before.loss_fall);
  const double chance = kStandardErrors * std::hypot(before.loss->error, after.loss->error, by_chance.loss);
  judge(measure, measure.b - measure.a, std::max(band, chance));
  // If the noise exceeds the band, the runs drew different samples, and a lower loss is no sign of harm.
  if (demand == Demand::kSame && measure.verdict == Verdict::kBetter && chance <= band) {
    measure.held = false;
  }
  if (measure.verdict == Verdict::kEqual && chance > kTooCoarse * scale && chance > band) {
    return not_comparable("loss",
                          translator.say("the losses are too few or too noisy to show a difference that matters"));
  }
  return measure;
}

double band_of_metric(const std::string& name, double value, Demand demand) {
  if (is_psnr(name)) {
    return kPsnrDb;
  }
  return (is_loss(name) ? loss_band(demand) : kMetric) * std::abs(value);
}

Measure compare_metric(const std::string& name, const Reading& before, const Reading& after, Demand demand,
                       double by_chance, const Translator& translator) {
  const Direction better = better_direction(name);
  const bool judged = better != Direction::kUnknown && demand != Demand::kFinite;
  if (!std::isfinite(before.value) || (!std::isfinite(after.value) && better == Direction::kUnknown)) {
    return not_comparable(name, translator.say("{} is not a finite number", name));
  }
  if (!std::isfinite(after.value)) {
    return not_finite(name, translator);
  }
  Measure measure = side_by_side(name, before, after);
  if (judged) {
    const double chance = kStandardErrors * std::hypot(before.error, after.error, by_chance);
    const double worse = better == Direction::kLarger ? measure.a - measure.b : measure.b - measure.a;
    judge(measure, worse, std::max(band_of_metric(name, measure.a, demand), chance));
  }
  return measure;
}

}  // namespace

Demand demand_of(const std::set<std::string>& changed) {
  const bool exact = std::ranges::all_of(
      changed, [](const std::string& knob) { return knobs::class_of(knob) == knobs::KnobClass::kExact; });
  return !changed.empty() && exact ? Demand::kSame : Demand::kAsGood;
}

namespace {

/// The two values, with their difference if it is judged.
std::string values_in_words(const Measure& measure, const Translator& translator) {
  const std::string a = format_number(measure.a);
  const std::string b = format_number(measure.b);
  const std::string samples = format_number(measure.samples);
  const bool is_placed = measure.samples > 0;
  if (!measure.judged) {
    return is_placed ? translator.say("{} at {} samples is {} against {}", measure.name, samples, b, a)
                     : translator.say("{} at equal samples is {} against {}", measure.name, b, a);
  }
  const double difference = measure.b - measure.a;
  const double scale = std::abs(measure.a);
  if (is_psnr(measure.name) || scale == 0) {
    return is_placed ? translator.say("{} at {} samples is {} against {} ({:+.2g}, allowed {:.2g})", measure.name,
                                      samples, b, a, difference, measure.allowed)
                     : translator.say("{} at equal samples is {} against {} ({:+.2g}, allowed {:.2g})", measure.name, b,
                                      a, difference, measure.allowed);
  }
  const double percent = difference / scale * 100;
  const double allowed = measure.allowed / scale * 100;
  return is_placed ? translator.say("{} at {} samples is {} against {} ({:+.1f} %, allowed {:.0f} %)", measure.name,
                                    samples, b, a, percent, allowed)
                   : translator.say("{} at equal samples is {} against {} ({:+.1f} %, allowed {:.0f} %)", measure.name,
                                    b, a, percent, allowed);
}

}  // namespace

std::string in_words(const Measure& measure, Language language) {
  const Translator translator{language};
  if (!measure.why.empty()) {
    return measure.why;
  }
  const std::string words = values_in_words(measure, translator);
  return !measure.held && measure.verdict == Verdict::kBetter
             ? translator.say("{}: what changed leaves the arithmetic alone, so the samples differ", words)
             : words;
}

bool Parity::compared() const {
  return std::any_of(measures.begin(), measures.end(),
                     [](const Measure& measure) { return measure.verdict != Verdict::kNotComparable; });
}

Parity parity_of(const std::vector<Learned>& before, const std::vector<Learned>& after, Demand demand,
                 const Spread& chance, Language language) {
  const Translator translator{language};
  const Learned a = averaged(before);
  const Learned b = averaged(after);
  Parity parity;
  parity.measures.push_back(compare_loss(a, b, demand, chance, translator));
  for (const auto& [name, reading] : a.metrics) {
    if (const auto other = b.metrics.find(name); name != "loss" && other != b.metrics.end()) {
      const auto spread = chance.metrics.find(name);
      const double by_chance = spread == chance.metrics.end() ? 0 : spread->second;
      parity.measures.push_back(compare_metric(name, reading, other->second, demand, by_chance, translator));
    }
  }
  const auto broken = std::find_if(parity.measures.begin(), parity.measures.end(),
                                   [](const Measure& measure) { return !measure.held; });
  if (broken != parity.measures.end()) {
    parity.held = false;
    parity.why = in_words(*broken, language);
  }
  return parity;
}

Parity parity_of(const std::vector<LearningCurves>& a, const std::vector<LearningCurves>& b, Demand demand,
                 Language language) {
  std::vector<LearningCurves> runs = a;
  runs.insert(runs.end(), b.begin(), b.end());
  const std::vector<Learned> learned = learned_by(runs);
  const auto middle = learned.begin() + static_cast<std::ptrdiff_t>(a.size());
  const std::vector<Learned> before(learned.begin(), middle);
  return parity_of(before, {middle, learned.end()}, demand, spread_of(before).of_difference(a.size(), b.size()),
                   language);
}

}  // namespace unidle::experiment
