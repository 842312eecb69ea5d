#include "unidle/tune/trials/trial_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "unidle/account/knob_readings.h"
#include "unidle/knobs/knob.h"
#include "unidle/record/note_types.h"

namespace unidle::tune {

std::map<long long, double> losses_of(const account::Account& account) {
  std::map<long long, double> losses;
  for (const account::CurvePoint& point : account.losses.points) {
    losses[std::llround(point.samples)] = point.value;
  }
  for (const double samples : account.losses.not_finite) {
    losses[std::llround(samples)] = std::numeric_limits<double>::quiet_NaN();
  }
  return losses;
}

ReportedSettings effective_settings(const account::RunData& run) {
  ReportedSettings effective;
  for (const auto& [knob, reading] : account::knob_readings(run)) {
    if (reading.effective) {
      effective[knob] = *reading.effective;
    }
  }
  return effective;
}

knobs::Settings known_settings(const ReportedSettings& reported) {
  knobs::Settings settings;
  for (const auto& [name, text] : reported) {
    const knobs::Knob* knob = knobs::find_knob(name);
    if (const auto value = knob == nullptr ? std::nullopt : knobs::parse_value(*knob, text)) {
      settings.set(name, *value);
    }
  }
  return settings;
}

bool lengths_vary(const account::RunData& run) {
  bool vary = false;
  record::each_note<record::NoteType::kShapes>(
      run.notes, [&](const auto& note) { vary = vary || note.whole("distinct").value_or(0) > 2; });
  return vary;
}

std::string longest_in(const account::RunData& run) {
  std::string found;
  std::int64_t largest = 0;
  record::each_note<record::NoteType::kLongest>(run.notes, [&](const auto& note) {
    if (const std::int64_t longest = note.whole("longest").value_or(0); longest > largest) {
      largest = longest;
      found = fmt::format("{} of {} samples in one batch, up to {} values each where the usual one has {}",
                          note.whole("batch").value_or(0), note.whole("samples").value_or(0), largest,
                          note.whole("usual").value_or(0));
    }
  });
  return found;
}

bool read_trial(const account::RunData& run, experiment::LossScale& scale, TrialResult& result) {
  const account::Account account = account::account_of(run);
  const std::size_t steps = account.timeline.steps.size();
  result.rate = steps < kLeastSteps ? 0 : account.rates.total.value_or(0);
  result.ok = result.rate > 0;
  if (!result.ok) {
    result.problem = fmt::format("only {} training steps were seen in {:.0f} s", steps, result.seconds);
    return false;
  }
  result.step_rate = account.rates.training;
  result.losses = losses_of(account);
  result.read_loss(scale);
  result.effective = effective_settings(run);
  result.others_cpus = account.cpus.others;
  result.own_cpus = account.cpus.own;
  result.lengths_vary = lengths_vary(run);
  result.longest = longest_in(run);
  return true;
}

}  // namespace unidle::tune
