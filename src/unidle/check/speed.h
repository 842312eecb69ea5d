// Measures this machine: its storage, its decoder and, through unidle-train, its arithmetic and its GPU link.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>

namespace unidle::check {

struct SpeedOptions {
  std::filesystem::path folder = ".";  // where to put the test file, which is removed afterwards
  std::uint64_t file_bytes = 256U << 20;
  double decode_s = 0.5;  // how long to decode
};

/// {"read_bytes_s", "read_how", "small_reads_s"}: reads one large file in order, and 16 KiB at random offsets,
/// bypassing the page cache where the file system allows (read_how says "direct" or "cached"). Throws kIo when the
/// folder is not writable.
nlohmann::json measure_disk(const SpeedOptions& options);

/// {"jpeg_pixels_s", "jpeg_images_s", "picture": "1024x768"}: one thread, a photograph-like JPEG.
nlohmann::json measure_decode(const SpeedOptions& options);

/// {"disk", "decode", "torch"}; torch is the output of `unidle-train speed --format json`. Throws kMissing when
/// unidle-train is not found and kChild when it fails.
nlohmann::json measure_speed(const SpeedOptions& options);

}  // namespace unidle::check
