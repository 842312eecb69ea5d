// Prepares the workload's data from the photographs in scikit-image's package.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/data/image.h"
#include "workloads/common/package_files.h"
#include "workloads/common/whole_folder.h"
#include "workloads/superres/model.h"
#include "workloads/superres/superres.h"

namespace unidle::workloads::superres {

namespace {

namespace fs = std::filesystem;

constexpr int kTileSide = 512;  // approximate side in pixels of the tiles that a photograph is cut into
constexpr int kOfHeldOut = 10;  // one in this many pictures of a folder is for validation

/// A photograph and the grid it is cut into.
struct Photograph {
  std::string file;
  std::string part;
  int columns;
  int rows;
};

/// The photographs of scikit-image: an epoch has 24 pictures. Both pictures of the stereo pair are for training: one in
/// each part would leak validation data.
const Photograph kPhotographs[] = {
    {"astronaut.png", "train", 1, 1},         {"ihc.png", "train", 1, 1},
    {"hubble_deep_field.jpg", "train", 3, 2}, {"motorcycle_left.png", "train", 2, 1},
    {"motorcycle_right.png", "train", 2, 1},  {"retina.jpg", "train", 3, 4},
    {"chelsea.png", "validation", 1, 1},      {"coffee.png", "validation", 1, 1},
    {"rocket.jpg", "validation", 1, 1},
};

/// Judges by the first bytes, not by the name.
bool is_picture(const fs::path& path) {
  std::array<char, 12> start{};
  std::ifstream(path, std::ios::binary).read(start.data(), start.size());
  return data::is_picture_start(std::as_bytes(std::span(start)));
}

bool has_photographs(const fs::path& folder) { return fs::is_regular_file(folder / kPhotographs[0].file); }

fs::path photographs_folder() {
  if (const char* given = std::getenv("UNIDLE_PHOTOS")) {
    if (!has_photographs(given)) {
      throw Error(ErrorCode::kInput, fmt::format("UNIDLE_PHOTOS={}", given), "has no astronaut.png",
                  "name scikit-image's data folder");
    }
    return given;
  }
  if (const auto found = find_package_file(fs::path("skimage/data") / kPhotographs[0].file)) {
    return found->parent_path();
  }
  throw Error(ErrorCode::kMissing, "scikit-image", "its photographs were not found",
              "python3 -m pip install scikit-image, or set UNIDLE_PHOTOS to its data folder");
}

/// The number of tiles of about kTileSide.
int cut_of(int pixels) { return std::max(1, (pixels + kTileSide / 2) / kTileSide); }

std::vector<Photograph> photographs_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.is_regular_file() && is_picture(entry.path())) {
      names.push_back(entry.path().filename().string());
    }
  }
  std::ranges::sort(names);
  if (names.size() < 2) {
    throw Error(ErrorCode::kInput, folder.string(),
                fmt::format("has {} pictures (PNG, JPEG, WebP); expected two or more", names.size()),
                "prepare.source names the folder that they lie in, not one above it");
  }
  std::vector<Photograph> found;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const data::ImageInfo info = data::probe_image_file((folder / names[i]).string());
    const bool held_out = i % kOfHeldOut == 1;
    found.push_back({names[i], held_out ? "validation" : "train", cut_of(info.width), cut_of(info.height)});
  }
  return found;
}

at::Tensor read_photograph(const fs::path& path) {
  const std::string bytes = read_file(path);
  const data::Picture picture = data::ImageDecoder().decode(std::as_bytes(std::span(bytes)), path.string());
  at::Tensor pixels = at::empty({picture.height, picture.width, 3}, at::kByte);
  std::memcpy(pixels.mutable_data_ptr(), picture.pixels.data(), picture.bytes());
  return pixels;
}

at::Tensor shrink(const at::Tensor& high) {
  const at::Tensor planes = high.permute({2, 0, 1}).unsqueeze(0).to(at::kFloat).contiguous();
  const at::Tensor low = at::_upsample_bicubic2d_aa(planes, {high.size(0) / kScale, high.size(1) / kScale}, false);
  return low.round().clamp(0, 255).to(at::kByte).squeeze(0).permute({1, 2, 0}).contiguous();
}

void write_png(const fs::path& path, const at::Tensor& pixels) {
  data::Picture picture;
  picture.height = static_cast<int>(pixels.size(0));
  picture.width = static_cast<int>(pixels.size(1));
  const auto* first = pixels.const_data_ptr<std::uint8_t>();
  picture.pixels.assign(first, first + pixels.numel());
  write_file_atomic(path, data::encode_png(picture));
}

int write_tiles(const Photograph& photograph, const fs::path& source, const fs::path& folder) {
  const at::Tensor whole = read_photograph(source / photograph.file);
  const std::int64_t height = whole.size(0) / photograph.rows / kScale * kScale;
  const std::int64_t width = whole.size(1) / photograph.columns / kScale * kScale;
  for (int row = 0; row < photograph.rows; ++row) {
    for (int column = 0; column < photograph.columns; ++column) {
      const at::Tensor tile = whole.narrow(0, row * height, height).narrow(1, column * width, width).contiguous();
      const std::string name = fmt::format("{}_{}{}.png", photograph.file, row, column);
      write_png(folder / photograph.part / "high" / name, tile);
      write_png(folder / photograph.part / "low" / name, shrink(tile));
    }
  }
  return photograph.rows * photograph.columns;
}

}  // namespace

std::string prepare_photographs(const fs::path& folder, const std::string& source) {
  const fs::path from = source.empty() ? photographs_folder() : fs::path(source);
  if (!fs::is_directory(from)) {
    throw Error(ErrorCode::kInput, "prepare.source", fmt::format("expected a folder of pictures, found '{}'", source));
  }
  const std::vector<Photograph> photographs =
      source.empty() ? std::vector(std::begin(kPhotographs), std::end(kPhotographs)) : photographs_in(from);
  int train = 0;
  int validation = 0;
  make_whole_folder(folder, [&](const fs::path& made) {
    for (const char* part : {"train", "validation"}) {
      make_folders(made / part / "high");
      make_folders(made / part / "low");
    }
    for (const Photograph& photograph : photographs) {
      (photograph.part == "train" ? train : validation) += write_tiles(photograph, from, made);
    }
  });
  return fmt::format("{} training and {} validation pairs in {}, from {}", train, validation, folder.string(),
                     from.string());
}

}  // namespace unidle::workloads::superres
