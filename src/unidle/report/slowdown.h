// Whether a run trained slower than the last runs of the same command.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "unidle/language/translator.h"
#include "unidle/report/comparison.h"

namespace unidle::report {

struct Slowdown {
  std::vector<double> before;  // training samples/s of the earlier runs, newest first
  double now = 0;
  std::string last;                         // name of the newest earlier run
  std::vector<SettingDifference> settings;  // between that one and this
};

/// Nothing unless this run is slower than each of them by more than a tenth, beyond the interval of its steps. Runs of
/// another command, with other ranks, with too few steps, or beside other processes are left out.
std::optional<Slowdown> slowdown_of(const RunData& run, const std::vector<RunData>& earlier);

/// Reads the record and at most three earlier ones. Records that cannot be read are left out.
std::optional<Slowdown> slowdown_of(const std::filesystem::path& record);

/// "Slower than your last 3 runs of this command: 82 samples/s, 118 to 124 before. ..."
std::string in_words(const Slowdown& slowdown, const Translator& translator);

}  // namespace unidle::report
