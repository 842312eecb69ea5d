#include "unidle/data/inspect/inspection.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "unidle/base/characters.h"
#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/data/detail/foreign_bytes.h"
#include "unidle/data/detail/tar_samples.h"
#include "unidle/data/inspect/kinds.h"
#include "unidle/data/tables/parts.h"

namespace unidle::data {

namespace {

namespace fs = std::filesystem;

bool is_one_of(const fs::path& path, std::initializer_list<std::string_view> extensions) {
  const std::string extension = lower(path.extension().string());
  return std::find(extensions.begin(), extensions.end(), extension) != extensions.end();
}

bool is_array(const fs::path& path) { return is_one_of(path, {".npy", ".npz"}); }
bool is_table(const fs::path& path) { return is_one_of(path, {".csv", ".tsv"}); }
bool is_archive(const fs::path& path) { return is_one_of(path, {".tar"}); }
bool is_picture_name(const fs::path& path) { return is_one_of(path, {".jpg", ".jpeg", ".png", ".webp"}); }

bool holds(const fs::path& folder, bool (*wanted)(const fs::path&)) {
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (std::error_code unknown; entry.is_regular_file(unknown) && wanted(entry.path())) {
      return true;
    }
  }
  return false;
}

bool holds_folders_with(const fs::path& folder, bool (*wanted)(const fs::path&)) {
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (std::error_code unknown; entry.is_directory(unknown) && holds(entry.path(), wanted)) {
      return true;
    }
  }
  return false;
}

/// True when a class folder contains a picture, at any depth.
bool holds_classes(const fs::path& folder) {
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    std::error_code unknown;
    if (!entry.is_directory(unknown)) {
      continue;
    }
    for (fs::recursive_directory_iterator file(entry, unknown), end; !unknown && file != end; file.increment(unknown)) {
      if (std::error_code ignored; file->is_regular_file(ignored) && is_picture_name(file->path())) {
        return true;
      }
    }
  }
  return false;
}

/// True when the file's first non-empty line is "PICTURE LABEL".
bool lists_pictures(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  while (line.find_first_not_of(" \t\r") == std::string::npos && std::getline(file, line)) {
  }
  const std::size_t gap = line.find_last_of(" \t");
  return gap != std::string::npos && is_picture_name(line.substr(0, gap));
}

/// Throws kInput when neither the file's name nor its first bytes match a supported kind.
void refuse_other_bytes(const fs::path& path) {
  if (is_picture_name(path)) {
    throw Error(ErrorCode::kInput, path.string(), "is a single picture",
                "name a folder of pictures, or a list with a picture and its label on each line");
  }
  if (const std::string type = lower(path.extension().string());
      type == ".json" || type == ".jsonl" || type == ".ndjson") {
    throw Error(
        ErrorCode::kInput, path.string(), "is JSON, whose lines no source takes apart",
        "unidle.data.wrap takes a Python data set that reads it; pandas.read_json(...).to_csv(...) makes a table");
  }
  if (const auto foreign = detail::foreign_bytes(detail::foreign_head(path.string()))) {
    throw Error(ErrorCode::kInput, path.string(), foreign->what + "; expected text", foreign->hint);
  }
}

/// Throws kInput for a folder with a file in an unsupported format.
void refuse_other_files(const fs::path& folder) {
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (std::error_code unknown; entry.is_regular_file(unknown)) {
      if (const auto foreign = detail::foreign_bytes(detail::foreign_head(entry.path().string()))) {
        throw Error(
            ErrorCode::kInput, folder.string(),
            fmt::format("holds no files of a known kind; {} {}", entry.path().filename().string(), foreign->what),
            foreign->hint);
      }
    }
  }
}

/// Of a folder with several kinds only one is used: counts the other files.
void count_others(const fs::path& folder, bool (*taken)(const fs::path&), Inspection& found) {
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const fs::path& path = entry.path();
    const bool ours = path.extension() == ".unidle-index";  // the index of an archive
    std::error_code unknown;
    if (!taken(path) && !ours && !path.filename().native().starts_with('.') && entry.is_regular_file(unknown)) {
      ++found.passed_over[lower(path.extension().string())];
    }
  }
}

Inspection inspect_folder(const std::string& path, const InspectOptions& options) {
  const fs::path folder(path);
  const auto count = [&](Inspection found, bool (*taken)(const fs::path&)) {
    count_others(folder, taken, found);
    return found;
  };
  constexpr auto kNone = [](const fs::path&) { return false; };  // class folders have no files of their own
  if (fs::is_directory(status_of(folder / "high")) && fs::is_directory(status_of(folder / "low"))) {
    return count(inspect_kinds::pairs(path, options), kNone);
  }
  if (holds(folder, is_table)) {
    return count(inspect_kinds::table(tables::find_parts({path}), options), is_table);
  }
  if (holds(folder, is_array) || holds_folders_with(folder, is_array)) {
    return count(inspect_kinds::npy(path, options), is_array);
  }
  if (holds(folder, is_archive)) {
    return count(inspect_kinds::tar(detail::find_archives({path}), options), is_archive);
  }
  if (holds_classes(folder)) {
    return count(inspect_kinds::images(path, options), kNone);
  }
  refuse_other_files(folder);
  throw Error(ErrorCode::kInput, path, "holds no files of a known kind",
              "expected *.csv, *.npy, *.npz, *.tar, a folder of pictures for each class, or high/ and low/");
}

}  // namespace

void Inspection::add_problem(std::string at, std::string what) {
  constexpr std::int64_t kMostListed = 100;
  ++all_problems_;
  if (all_problems_ <= kMostListed) {
    problems.push_back({std::move(at), std::move(what)});
    return;
  }
  if (all_problems_ == kMostListed + 1) {
    problems.push_back({std::move(at), {}});
  }
  problems.back().what = fmt::format("this and {} more problems are not listed", all_problems_ - kMostListed - 1);
}

void Inspection::add_problem(const Error& error) {
  add_problem(error.subject(), error.hint().empty() ? error.message() : error.message() + " (" + error.hint() + ")");
}

Inspection inspect(const std::vector<std::string>& paths, const InspectOptions& options) {
  if (paths.size() != 1) {
    if (std::all_of(paths.begin(), paths.end(), is_archive)) {
      return inspect_kinds::tar(paths, options);
    }
    for (const std::string& path : paths) {
      if (!is_table(path)) {
        throw Error(ErrorCode::kUsage, path, "is not part of a table; expected one path, or several of *.csv or *.tar");
      }
    }
    return inspect_kinds::table(tables::find_parts(paths), options);
  }
  const std::string& path = paths.front();
  const fs::file_status status = status_of(path);
  if (fs::is_directory(status)) {
    return inspect_folder(path, options);
  }
  if (is_table(path)) {
    return inspect_kinds::table(tables::find_parts(paths), options);
  }
  if (!fs::exists(status)) {
    throw Error(ErrorCode::kInput, path, "does not exist");
  }
  if (const auto why = why_no_file(path)) {
    throw Error(ErrorCode::kInput, path, *why);
  }
  if (is_array(path)) {
    return inspect_kinds::npy(path, options);
  }
  if (is_archive(path)) {
    return inspect_kinds::tar(paths, options);
  }
  refuse_other_bytes(path);
  return lists_pictures(path) ? inspect_kinds::images(path, options) : inspect_kinds::sequences(path, options);
}

nlohmann::ordered_json to_json(const Inspection& inspection) {
  using Json = nlohmann::ordered_json;
  Json columns = Json::array();
  for (const Inspection::Column& column : inspection.columns) {
    columns.push_back(
        {{"name", column.name}, {"type", column.type}, {"missing", column.missing ? Json(*column.missing) : Json()}});
  }
  Json problems = Json::array();
  for (const Inspection::Problem& problem : inspection.problems) {
    problems.push_back({{"at", problem.at}, {"what", problem.what}});
  }
  return {{"kind", inspection.kind},
          {"rows", inspection.rows},
          {"columns", columns},
          {"problems", problems},
          {"sample", inspection.sample}};
}

}  // namespace unidle::data
