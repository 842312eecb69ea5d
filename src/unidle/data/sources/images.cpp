#include "unidle/data/sources/images.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/data/detail/line_ends.h"
#include "unidle/data/detail/webp.h"
#include "unidle/data/source_kind.h"

namespace unidle::data {

namespace fs = std::filesystem;

namespace {

std::string lower_extension(const fs::path& path) {
  std::string extension = path.extension().string();
  std::transform(extension.begin(), extension.end(), extension.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return extension;
}

/// Throws for pictures that torchvision's ImageFolder accepts and we do not: without them the data set would differ.
bool is_readable_picture(const fs::path& path) {
  const std::string extension = lower_extension(path);
  if (extension == ".jpg" || extension == ".jpeg" || extension == ".png") {
    return true;
  }
  if (extension == ".webp" && detail::kReadsWebp) {
    return true;
  }
  for (const char* other : {".webp", ".bmp", ".tif", ".tiff", ".ppm", ".pgm"}) {
    if (extension == other) {
      throw Error(ErrorCode::kInput, path.string(), "has an unsupported format; expected .jpg, .jpeg, .png or .webp",
                  "convert it, or move it out of the folder");
    }
  }
  return false;
}

constexpr const char* kExpected = "expected a folder for each class, FOLDER/CLASS/NAME.jpg";

/// A link to an ancestor folder would be followed forever.
void reject_link_cycle(const fs::path& entry) {
  std::error_code unknown;
  const std::string to = fs::canonical(entry, unknown).string() + "/";
  const std::string here = fs::canonical(entry.parent_path(), unknown).string() + "/";
  if (!unknown && here.starts_with(to)) {
    throw Error(ErrorCode::kInput, entry.string(), "is a link that leads back to a folder it lies in", "remove it");
  }
}

template <typename Iterator>
std::vector<fs::path> listed(const fs::path& folder, fs::directory_options options, bool folders) {
  std::error_code error;
  std::vector<fs::path> paths;
  for (Iterator entry(folder, options, error), end; !error && entry != end; entry.increment(error)) {
    std::error_code ignored;
    if (!folders && entry->is_symlink(ignored) && entry->is_directory(ignored)) {
      reject_link_cycle(entry->path());
    }
    if (folders ? entry->is_directory(ignored) : !entry->is_directory(ignored) && is_readable_picture(entry->path())) {
      paths.push_back(entry->path());
    }
  }
  if (error) {
    throw Error(ErrorCode::kInput, folder.string(), fmt::format("cannot be listed: {}", error.message()), kExpected);
  }
  return paths;
}

}  // namespace

ImageSource::ImageSource(const std::string& path, const ImageOptions& options)
    : options_(options), samples_(options, "images") {
  fields_ = {samples_.field(), {"label", DType::kI64, {}}};
  if (options_.tell_crop) {
    fields_.push_back({"crop", DType::kI64, {5}});
    if (options_.colors.changes()) {
      fields_.push_back({"colors", DType::kF32, {8}});
    }
  }
  const fs::file_status status = status_of(path);
  if (fs::is_directory(status)) {
    list_folder(path);
  } else if (fs::exists(status)) {
    list_lines(path);
  } else {
    throw Error(ErrorCode::kInput, path, "is not there", kExpected);
  }
}

void ImageSource::list_folder(const std::string& folder) {
  std::vector<fs::path> classes = listed<fs::directory_iterator>(folder, fs::directory_options::none, true);
  std::sort(classes.begin(), classes.end());
  if (classes.empty()) {
    throw Error(ErrorCode::kInput, folder, "has no folders in it", kExpected);
  }
  for (const fs::path& one : classes) {
    auto files = listed<fs::recursive_directory_iterator>(one, fs::directory_options::follow_directory_symlink, false);
    if (files.empty()) {
      throw Error(ErrorCode::kInput, one.string(),
                  "holds no .jpg, .jpeg, .png or .webp; expected pictures of that class");
    }
    std::sort(files.begin(), files.end(), [](const fs::path& a, const fs::path& b) {
      return std::pair(a.parent_path().native(), a.native()) < std::pair(b.parent_path().native(), b.native());
    });
    for (const fs::path& file : files) {
      files_.push_back({file.string(), static_cast<std::int64_t>(classes_.size())});
    }
    classes_.push_back(one.filename().string());
  }
}

void ImageSource::list_lines(const std::string& list) {
  const std::string text = detail::without_mark(read_file(list));
  const fs::path folder = fs::path(list).parent_path();
  std::int64_t number = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line(text.data() + at, end - at);
    at = end + 1;
    ++number;
    while (!line.empty() && std::isspace(static_cast<unsigned char>(line.back())) != 0) {
      line.remove_suffix(1);
    }
    if (line.empty()) {
      continue;
    }
    const std::size_t gap = line.find_last_of(" \t");
    std::int64_t label = -1;
    const char* last = line.data() + line.size();
    if (gap == std::string_view::npos || gap == 0 || std::from_chars(line.data() + gap + 1, last, label).ptr != last ||
        label < 0) {
      throw Error(ErrorCode::kInput, fmt::format("{}:{}", list, number),
                  "expected a path, a space and the number of a class from 0");
    }
    const std::string_view path = line.substr(0, line.find_last_not_of(" \t", gap) + 1);
    files_.push_back({(folder / path).string(), label});
  }
  if (files_.empty()) {
    throw Error(ErrorCode::kInput, list, "has no lines; expected a path and the number of a class in each");
  }
}

std::uint64_t ImageSource::read(const ItemRequest& request, std::span<const Places> samples) const {
  const File& file = files_[static_cast<std::size_t>(request.item)];
  const detail::PictureSamples::Drawn drawn = samples_.make(file.path, request, samples[0][0]);
  std::memcpy(samples[0][1].data(), &file.label, sizeof file.label);
  if (options_.tell_crop) {
    tell(drawn, samples[0]);
  }
  return drawn.bytes;
}

void ImageSource::tell(const detail::PictureSamples::Drawn& drawn, const Places& places) const {
  const Region& crop = drawn.crop;
  const std::int64_t part[5] = {crop.y, crop.x, crop.height, crop.width, drawn.mirrored ? 1 : 0};
  std::memcpy(places[2].data(), part, sizeof part);
  if (!options_.colors.changes()) {
    return;
  }
  float colors[8];
  for (std::size_t i = 0; i < 4; ++i) {
    colors[i] = drawn.colors.factors[i];
    colors[i + 4] = static_cast<float>(drawn.colors.order[i]);
  }
  std::memcpy(places[3].data(), colors, sizeof colors);
}

std::string ImageSource::describe() const {
  return nlohmann::json{{"classes", classes_}}.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

namespace sources {

namespace {

std::unique_ptr<Source> open_images(SourceOptions& options, std::span<const ArrayView>) {
  const std::string path = options.text("path");
  const ImageOptions wanted = image_options(options, "images");
  options.done();
  return std::make_unique<ImageSource>(path, wanted);
}

}  // namespace

const SourceKind& images() {
  static const SourceKind kKind = {"images", open_images};
  return kKind;
}

}  // namespace sources

}  // namespace unidle::data
