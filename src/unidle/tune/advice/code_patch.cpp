#include "unidle/tune/advice/code_patch.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <string_view>

#include "unidle/base/files.h"
#include "unidle/knobs/changed_lines.h"
#include "unidle/knobs/config_file.h"
#include "unidle/knobs/place.h"
#include "unidle/knobs/setting_call.h"

namespace unidle::tune {

namespace fs = std::filesystem;

namespace {

/// The file's text with one change; nothing when its place is uncertain.
std::optional<std::string> changed(const std::string& text, int line, const CodeChange& change) {
  if (!change.lines.empty()) {
    std::optional<std::string> edited = text;
    for (auto lines = change.lines.rbegin(); edited && lines != change.lines.rend(); ++lines) {
      edited = knobs::with_lines(*edited, *lines);
    }
    return edited;
  }
  const auto source = knobs::PythonSource::read(text);
  if (!source) {
    return std::nullopt;
  }
  if (change.knob == "cache.features" && change.code.starts_with("@unidle.")) {
    return source->with_decorator(line, change.code + "  # another version when its results change");
  }
  if (change.knob == "batch.accumulation") {
    return source->with_number(line, change.value);
  }
  const auto setting = knobs::setting_call(change.knob, change.code.starts_with("unidle."));
  const auto call = setting ? setting->find(*source, line) : std::nullopt;
  return call ? setting->with(*source, *call, change.value) : std::nullopt;
}

/// A place below the program's folder.
std::optional<knobs::Place> place_of(const std::string& where) {
  return where.starts_with('/') ? std::nullopt : knobs::place_of(where);
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

std::string code_patch(std::vector<CodeChange> changes, const fs::path& folder) {
  // A change without a known line belongs to the file that makes the loader or calls the model.
  std::string main_file;
  for (const CodeChange& change : changes) {
    const auto place = place_of(change.near);
    main_file = main_file.empty() && place ? place->file : main_file;
  }
  // From the last line to the first: a change may add lines.
  std::ranges::stable_sort(changes, std::greater(), [](const CodeChange& change) {
    const auto place = place_of(change.where);
    return place ? place->line : 0;
  });
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

std::string patch_options(std::string_view patch, const fs::path& folder) {
  constexpr std::string_view kMark = "\n+++ ";
  bool has_link = false;
  for (std::size_t at = patch.find(kMark); at != std::string_view::npos; at = patch.find(kMark, at + 1)) {
    const std::size_t begin = at + kMark.size();
    const fs::path file =
        folder / patch.substr(begin, std::min(patch.find_first_of("\t\n", begin), patch.size()) - begin);
    std::error_code unknown;
    const fs::path holder = fs::weakly_canonical(file.parent_path(), unknown);
    if (const std::string inside = holder.lexically_relative(fs::weakly_canonical(folder, unknown)).string();
        inside.empty() || inside.starts_with("..")) {
      return "";
    }
    has_link = has_link || fs::is_symlink(file, unknown);
  }
  return has_link ? std::string("--follow-symlinks") + " -p0" : "-p0";
}

}  // namespace unidle::tune
