#include "unidle/diagnose/logs/stated.h"

#include "unidle/base/units.h"

namespace unidle::diagnose::detail {

namespace {

using unidle::logs::StatedSteps;
using unidle::logs::TextLog;

/// The wait for data, when the log states no other part of a step.
void add_input(const TextLog& log, Language language, Signals& signals) {
  const StatedSteps& stated = log.stated;
  if (!stated.data_share || !stated.step_s || *stated.data_share >= 1) {  // 1: both clocks read at once
    return;
  }
  signals.step = StepShares{.input = *stated.data_share,
                            .transfer = 0,
                            .compute = 0,
                            .sync = 0,
                            .optimizer = 0,
                            .other = 1 - *stated.data_share};
  signals.input_stated =
      translate(language, "as the log states: {} of the {} of a step, first in {}; it states nothing about the rest",
                format_seconds(*stated.data_share * *stated.step_s), format_seconds(*stated.step_s),
                place_in(log.file, stated.data_line->line));
}

}  // namespace

void add_stated(const TextLog& log, Language language, Signals& signals) {
  const StatedSteps& stated = log.stated;
  if (stated.step_s) {
    signals.step_s = stated.step_s;
  } else if (stated.steps_per_s) {
    signals.step_s = 1 / *stated.steps_per_s;
  }
  if (signals.time.train <= 0 && signals.wall_s <= 0) {  // lines without times
    signals.time.train = stated.seconds;
    signals.wall_s = stated.seconds;
  }
  if (stated.samples_per_s) {
    signals.samples_per_s = stated.samples_per_s;
  } else if (stated.batch && signals.step_s && *signals.step_s > 0) {
    signals.samples_per_s = *stated.batch / *signals.step_s;
  }
  signals.tokens_per_s = stated.tokens_per_s;
  signals.tokens_per_device = stated.tokens_per_device;
  add_input(log, language, signals);
}

}  // namespace unidle::diagnose::detail
