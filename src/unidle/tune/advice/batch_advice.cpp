#include "unidle/tune/advice/batch_advice.h"

#include <fmt/format.h>

#include <optional>
#include <vector>

#include "unidle/base/error.h"
#include "unidle/base/log.h"
#include "unidle/knobs/recognize.h"
#include "unidle/tune/advice/code_patch.h"

namespace unidle::tune {

namespace fs = std::filesystem;

namespace {

/// The line "FILE:N" of the only constant with the number of micro-batches per step.
std::string place_of_count(const fs::path& folder, const std::string& file, long long count) {
  std::optional<int> line;
  try {
    for (const knobs::Recognized& each : knobs::recognize(folder / file).knobs) {
      if (each.knob != "batch.accumulation" || each.means != count) {
        continue;
      }
      if (line) {
        return {};
      }
      line = each.line;
    }
  } catch (const Error& failure) {
    spdlog::debug("no patch for the batch size: {}", failure.what());
  }
  return line ? fmt::format("{}:{}", file, *line) : std::string();
}

}  // namespace

std::string batch_advice(const knobs::Settings& settings, const std::map<std::string, std::string>& places,
                         const fs::path& folder) {
  const long long size = settings.integer("batch.size");
  const long long count = settings.integer("batch.accumulation");
  if (!settings.contains("batch.size") || size < 1 || count < 2) {
    return {};
  }
  std::string advice = fmt::format(
      "no option of the program changes its batch size, so it was not tried: {} batches of {} make a step; fewer and "
      "larger ones, up to 1 of {}, are the same effective batch",
      count, size, size * count);
  const auto loader = places.find("loader");
  if (loader == places.end()) {
    return advice;
  }
  const std::string where = place_of_count(folder, loader->second.substr(0, loader->second.rfind(':')), count);
  std::string patch;
  if (!where.empty()) {
    const std::vector<CodeChange> changes = {
        {"batch.accumulation", where, "", "1", where},
        {"batch.size", loader->second, "", std::to_string(size * count), loader->second}};
    patch = code_patch(changes, folder);
  }
  return patch.empty() ? fmt::format("{} (the DataLoader is made at {})", advice, loader->second)
                       : fmt::format("{}. To review and to measure:\n{}", advice, patch);
}

}  // namespace unidle::tune
