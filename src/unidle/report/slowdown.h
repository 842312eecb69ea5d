// Whether a run trained slower than the last runs of the same command.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "unidle/language/translator.h"
#include "unidle/report/comparison.h"

namespace unidle::report {

struct Slowdown {
  std::vector<double> before;  // training samples/s of the earlier runs, newest first
  double now = 0;
  std::string own;                          // name of this run
  std::string last;                         // name of the newest earlier run
  std::vector<SettingDifference> settings;  // between that one and this
};

/// Gives the earlier runs of the same command on the same kind of machine, newest first; then nothing.
using EarlierRuns = std::function<std::optional<RunData>()>;

/// Nothing unless this run is slower than each of the last three by more than a tenth, beyond the interval of its
/// steps. Asks for no further run once one was as slow. Runs with other ranks, with too few steps, or beside other
/// processes are passed over.
std::optional<Slowdown> slowdown_of(const RunData& run, const EarlierRuns& next);

/// Of a record in `.unidle/runs`. Records that cannot be read are passed over.
std::optional<Slowdown> slowdown_of(const std::filesystem::path& record);

/// "Slower than your last 3 runs of this command: 82 samples/s, 118 to 124 before. ..."
std::string in_words(const Slowdown& slowdown, const Translator& translator);

}  // namespace unidle::report
