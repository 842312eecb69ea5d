// How each interval of a run's wall time was spent.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "unidle/account/account.h"
#include "unidle/language/translator.h"
#include "unidle/report/page/plot.h"

namespace unidle::report {

/// The parts of the steps, then the phases outside of them.
enum Activity : std::size_t { kStartup = account::kPartCount, kValidate, kCheckpoint, kActivityCount };

/// Shares of the bin's time by activity; the sum is at most 1, unreported time stays empty.
using Bin = std::array<double, kActivityCount>;

/// `count` bins over [start of the run, start + length_s].
std::vector<Bin> bins(const account::Account& account, double length_s, std::size_t count);

/// The colour and name of an activity.
struct Look {
  std::size_t activity;
  const char* css;
  const char* label;  // to be translated
};
/// From the bottom up: work, then waiting, then phases outside of the steps.
const std::array<Look, kActivityCount>& looks();

/// Per cent of the time by activity, those that happened, over [start of the run, start + length_s].
std::vector<Layer> activity_layers(const account::Account& account, double length_s, const Translator& translator);

/// Start-up, validations and checkpoints, in units of `unit_s` seconds since the start of the run. Phases that lie too
/// close to each other to be told apart are one band.
std::vector<Band> phase_bands(const account::Account& account, double length_s, double unit_s,
                              const Translator& translator);

/// What happened, in one sentence for screen readers.
std::string activity_words(const account::Account& account, const Translator& translator);

}  // namespace unidle::report
