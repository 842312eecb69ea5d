#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <mutex>
#include <optional>
#include <set>
#include <thread>

#include "unidle/base/characters.h"
#include "unidle/base/error.h"
#include "unidle/data/image.h"
#include "unidle/data/inspect/kinds.h"
#include "unidle/data/sources/images.h"
#include "unidle/telemetry/host.h"

namespace unidle::data::inspect_kinds {

namespace {

namespace fs = std::filesystem;

/// A fully decoded picture, or its problem.
struct SeenPicture {
  ImageInfo info;
  std::optional<Error> error;

  std::string size() const { return error ? "" : fmt::format("{} x {}", info.width, info.height); }
};

SeenPicture look_at(ImageDecoder& decoder, const std::string& path) {
  SeenPicture seen;
  try {
    seen.info = decoder.decode_region(decoder.read(path), path, {}).info;
  } catch (const Error& error) {
    seen.error = error;
  }
  return seen;
}

/// Decodes all of them on all CPUs.
std::vector<SeenPicture> look_at_all(const std::vector<std::string>& paths, const InspectOptions& options) {
  std::vector<SeenPicture> seen(paths.size());
  std::atomic<std::size_t> next = 0;
  std::mutex mutex;
  std::uint64_t done = 0;
  const auto work = [&] {
    ImageDecoder decoder;
    for (std::size_t i = next++; i < paths.size(); i = next++) {
      seen[i] = look_at(decoder, paths[i]);
      const std::lock_guard lock(mutex);
      ++done;
      if (options.progress) {
        options.progress(done, paths.size());
      }
    }
  };
  std::vector<std::jthread> threads;
  for (int i = 1, cpus = telemetry::usable_cpus(); i < cpus; ++i) {
    threads.emplace_back(work);
  }
  work();
  threads.clear();
  return seen;
}

std::string formats_of(const std::vector<SeenPicture>& seen) {
  std::set<std::string_view> names;
  for (const SeenPicture& one : seen) {
    if (!one.error) {
      names.insert(name_of(one.info.format));
    }
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const std::string extension = lower(entry.path().extension().string());
    if (extension == ".png" || extension == ".jpg" || extension == ".jpeg") {
      names.push_back(entry.path().filename().string());
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

Inspection images(const std::string& path, const InspectOptions& options) {
  Inspection result;
  result.kind = "images";
  std::optional<ImageSource> source;
  try {
    source.emplace(path, ImageOptions{});
  } catch (const Error& error) {
    result.add_problem(error);
    return result;
  }
  std::vector<std::string> paths;
  for (std::int64_t item = 0; item < source->items(); ++item) {
    paths.push_back(source->file(item));
  }
  const std::vector<SeenPicture> seen = look_at_all(paths, options);
  result.rows = source->items();
  std::int64_t unread = 0;
  for (const SeenPicture& one : seen) {
    if (one.error) {
      result.add_problem(*one.error);
      ++unread;
    }
  }
  const fs::path folder = fs::is_directory(path) ? fs::path(path) : fs::path(path).parent_path();
  const auto rows = static_cast<std::size_t>(std::min(options.sample_rows, result.rows));
  for (std::size_t i = 0; i < rows; ++i) {
    const auto label = static_cast<std::size_t>(source->label(static_cast<std::int64_t>(i)));
    result.sample.push_back({fs::path(paths[i]).lexically_relative(folder).string(), seen[i].size(),
                             label < source->classes().size() ? source->classes()[label] : std::to_string(label)});
  }
  const char* label_type = source->classes().empty() ? "integer" : "text";
  result.columns = {{"picture", formats_of(seen), unread}, {"size", "pixels", unread}, {"class", label_type, 0}};
  return result;
}

Inspection pairs(const std::string& folder, const InspectOptions& options) {
  Inspection result;
  result.kind = "pairs";
  const std::vector<std::string> sides[] = {names_in(fs::path(folder) / "low"), names_in(fs::path(folder) / "high")};
  std::vector<std::string> names;  // of both folders
  std::set_union(sides[0].begin(), sides[0].end(), sides[1].begin(), sides[1].end(), std::back_inserter(names));
  std::vector<std::string> paths[2];
  std::int64_t missing[2] = {0, 0};
  std::vector<std::string> whole;
  for (const std::string& name : names) {
    const std::string path[] = {(fs::path(folder) / "low" / name).string(),
                                (fs::path(folder) / "high" / name).string()};
    bool complete = true;
    for (int side : {0, 1}) {
      if (!std::binary_search(sides[side].begin(), sides[side].end(), name)) {
        result.add_problem(path[1 - side], fmt::format("has no partner; expected {}", path[side]));
        ++missing[side];
        complete = false;
      }
    }
    if (complete) {
      whole.push_back(name);
      paths[0].push_back(path[0]);
      paths[1].push_back(path[1]);
    }
  }
  if (names.empty()) {
    result.add_problem((fs::path(folder) / "high").string(), "holds no .png, .jpg or .jpeg");
  }
  const std::vector<SeenPicture> low = look_at_all(paths[0], options);
  const std::vector<SeenPicture> high = look_at_all(paths[1], options);
  int scale = 0;  // of the first pair
  for (std::size_t i = 0; i < whole.size(); ++i) {
    for (const SeenPicture* one : {&low[i], &high[i]}) {
      if (one->error) {
        result.add_problem(*one->error);
      }
    }
    if (low[i].error || high[i].error) {
      continue;
    }
    scale = scale == 0 ? high[i].info.width / low[i].info.width : scale;
    if (high[i].info.width != low[i].info.width * scale || high[i].info.height != low[i].info.height * scale) {
      result.add_problem(paths[1][i], fmt::format("is {}; expected {} times {}, the size of {}", high[i].size(), scale,
                                                  low[i].size(), paths[0][i]));
    }
  }
  result.rows = static_cast<std::int64_t>(whole.size());
  for (std::size_t i = 0; i < whole.size() && static_cast<std::int64_t>(i) < options.sample_rows; ++i) {
    result.sample.push_back(
        {fmt::format("{} {}", whole[i], low[i].size()), fmt::format("{} {}", whole[i], high[i].size())});
  }
  result.columns = {{"low", formats_of(low), missing[0]}, {"high", formats_of(high), missing[1]}};
  return result;
}

}  // namespace unidle::data::inspect_kinds
