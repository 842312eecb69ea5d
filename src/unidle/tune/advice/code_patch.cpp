#include "unidle/tune/advice/code_patch.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>
#include <string_view>

#include "unidle/base/files.h"
#include "unidle/knobs/config_file.h"
#include "unidle/knobs/knob.h"
#include "unidle/tune/advice/python_edit.h"

namespace unidle::tune {

namespace fs = std::filesystem;

namespace {

struct Place {
  std::string file;
  int line = 0;
};

std::optional<Place> place_of(const std::string& where) {
  const std::size_t colon = where.rfind(':');
  const std::string line = colon == std::string::npos ? "" : where.substr(colon + 1);
  if (line.empty() || !std::all_of(line.begin(), line.end(), [](unsigned char c) { return std::isdigit(c) != 0; }) ||
      line.size() > 9 || where[0] == '/') {
    return std::nullopt;
  }
  return Place{where.substr(0, colon), std::stoi(line)};
}

/// The call that a change concerns: on its line when known, else the only such call in the file.
std::optional<PythonSource::Call> call_of(const PythonSource& source, int line,
                                          const std::vector<std::string_view>& names) {
  return line > 0 ? source.call_on_line(line, names) : source.only_call(names);
}

/// The file's text with one change; nothing when its place is uncertain.
std::optional<std::string> changed(const std::string& text, int line, const CodeChange& change) {
  static const std::vector<std::string_view> kOptimizers = {"Adam", "AdamW", "SGD", "Adagrad"};
  const auto source = PythonSource::read(text);
  if (!source) {
    return std::nullopt;
  }
  const auto with = [&](std::optional<PythonSource::Call> call, std::string_view name) {
    return call ? source->with_argument(*call, name, change.value) : std::nullopt;
  };
  const knobs::Knob* knob = knobs::find_knob(change.knob);
  if (knob != nullptr && knob->change.code_place == "loader" && !knob->change.argument.empty()) {
    const bool package = change.code.starts_with("unidle.");
    return with(source->call_on_line(line, {package ? "Loader" : "DataLoader"}),
                package ? knob->change.package_argument : knob->change.argument);
  }
  if (change.knob == "cache.features" && change.code.starts_with("@unidle.")) {
    return source->with_decorator(line, change.code + "  # another version when its results change");
  }
  if (change.knob == "batch.size") {
    const auto loader = source->call_on_line(line, {"DataLoader", "Loader"});
    return loader ? source->with_second_argument(*loader, "batch_size", change.value) : std::nullopt;
  }
  if (change.knob == "batch.accumulation") {
    return source->with_number(line, change.value);
  }
  if (change.knob == "optimizer.fused") {
    return with(call_of(*source, line, kOptimizers), "fused");
  }
  if (change.knob == "optimizer.zero_to_none") {
    return with(call_of(*source, line, {"zero_grad"}), "set_to_none");
  }
  return std::nullopt;
}

using Files = std::map<std::string, std::pair<std::string, std::string>>;  // before, after

/// Applies the changes of the batch (`of_batch`), or all others. False when one of them could not be placed.
bool edit(Files& files, const std::vector<CodeChange>& changes, bool of_batch, const std::string& main_file,
          const fs::path& folder) {
  bool all = true;
  for (const CodeChange& change : changes) {
    if (change.knob.starts_with("batch.") != of_batch) {
      continue;
    }
    const auto place = place_of(change.where);
    const std::string file = place ? place->file : main_file;
    const auto text = file.empty() ? std::nullopt : try_read_file(folder / file);
    if (!text) {
      all = false;
      continue;
    }
    auto& [before, after] = files.try_emplace(file, *text, *text).first->second;
    if (auto edited = changed(after, place ? place->line : 0, change)) {
      after = std::move(*edited);
    } else {
      all = false;
    }
  }
  return all;
}

}  // namespace

std::string code_patch(const std::vector<CodeChange>& changes, const fs::path& folder) {
  // A change without a known line belongs to the file that makes the loader or calls the model.
  std::string main_file;
  for (const CodeChange& change : changes) {
    const auto place = place_of(change.near);
    main_file = main_file.empty() && place ? place->file : main_file;
  }
  Files files;
  // A batch change that is applied only in part would change the effective batch.
  if (Files with_batch; edit(with_batch, changes, true, main_file, folder)) {
    files = std::move(with_batch);
  }
  edit(files, changes, false, main_file, folder);
  std::string patch;
  for (const auto& [file, texts] : files) {
    patch += knobs::unified_diff(texts.first, texts.second, file);
  }
  return patch;
}

}  // namespace unidle::tune
