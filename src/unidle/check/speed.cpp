#include "unidle/check/speed.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <random>
#include <vector>

#include "unidle/base/clock.h"
#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/base/handle.h"
#include "unidle/base/json.h"
#include "unidle/base/process.h"
#include "unidle/base/terminal.h"
#include "unidle/base/units.h"
#include "unidle/data/image.h"

namespace unidle::check {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

constexpr std::size_t kBlock = 1U << 20;
constexpr std::size_t kSmall = 16U << 10;  // a small picture, or a page of a column
constexpr std::size_t kAlign = 4096;       // alignment required by direct reads
constexpr std::int64_t kSmallTime_ns = kNsPerSecond / 2;

struct Aligned {
  explicit Aligned(std::size_t bytes) : data(static_cast<char*>(std::aligned_alloc(kAlign, bytes)), &std::free) {}
  std::unique_ptr<char, decltype(&std::free)> data;
};

/// A temporary file, removed on destruction.
class TestFile {
 public:
  TestFile(const fs::path& folder, std::uint64_t bytes) : path_((folder / ".unidle-speed-XXXXXX").string()) {
    fd_.reset(::mkostemp(path_.data(), O_CLOEXEC));
    if (!fd_) {
      throw system_error(ErrorCode::kIo, folder.string(), "a test file cannot be made", errno);
    }
    ::unlink(path_.c_str());
    fill(bytes);
  }
  int fd() const { return fd_.get(); }

 private:
  void fill(std::uint64_t bytes) {
    Aligned block(kBlock);
    std::mt19937_64 random(1);  // incompressible, so that compressing or deduplicating storage gains nothing
    for (std::uint64_t done = 0; done < bytes; done += kBlock) {
      for (std::size_t i = 0; i < kBlock; i += sizeof(std::uint64_t)) {
        const std::uint64_t value = random();
        std::copy_n(reinterpret_cast<const char*>(&value), sizeof value, block.data.get() + i);
      }
      if (::write(fd_.get(), block.data.get(), kBlock) != static_cast<ssize_t>(kBlock)) {
        throw system_error(ErrorCode::kIo, path_, "the test file cannot be written", errno);
      }
    }
    ::fsync(fd_.get());
    ::posix_fadvise(fd_.get(), 0, 0, POSIX_FADV_DONTNEED);
  }

  std::string path_;
  UniqueFd fd_;
};

/// Opens the file for direct reads, or cached when the file system refuses.
UniqueFd open_direct(int fd, bool& direct) {
  UniqueFd again(::open(fmt::format("/proc/self/fd/{}", fd).c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC));
  direct = static_cast<bool>(again);
  return direct ? std::move(again) : UniqueFd(::dup(fd));
}

/// A picture with the smooth colours and texture of a photograph. Flat pictures decode much faster.
data::Picture photograph(int width, int height) {
  data::Picture picture{width, height, {}};
  picture.pixels.resize(static_cast<std::size_t>(width) * static_cast<std::size_t>(height) * 3);
  std::minstd_rand random(7);
  std::size_t at = 0;
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      const double wave = std::sin(x * 0.021) + std::cos(y * 0.017) + std::sin((x + 2 * y) * 0.11) * 0.4;
      for (int c = 0; c < 3; ++c) {
        const double noise = static_cast<double>(random() % 32) - 16;
        picture.pixels[at++] = static_cast<std::uint8_t>(std::clamp(128 + wave * 40 + c * 9 + noise, 0.0, 255.0));
      }
    }
  }
  return picture;
}

}  // namespace

json measure_disk(const SpeedOptions& options) {
  const TestFile file(options.folder, options.file_bytes);
  bool direct = false;
  const UniqueFd fd = open_direct(file.fd(), direct);
  Aligned block(kBlock);
  Clock& clock = system_clock();
  const std::int64_t start = clock.now_ns();
  std::uint64_t read = 0;
  for (ssize_t got = 0; (got = ::read(fd.get(), block.data.get(), kBlock)) > 0;) {
    read += static_cast<std::uint64_t>(got);
  }
  const double large_s = seconds(clock.now_ns() - start);
  std::mt19937_64 random(2);
  const std::int64_t small_start = clock.now_ns();
  std::uint64_t reads = 0;
  while (clock.now_ns() - small_start < kSmallTime_ns) {
    const auto offset = static_cast<off_t>(random() % (options.file_bytes / kSmall) * kSmall);
    if (::pread(fd.get(), block.data.get(), kSmall, offset) <= 0) {
      throw system_error(ErrorCode::kIo, options.folder.string(), "the test file cannot be read", errno);
    }
    ++reads;
  }
  const double small_s = seconds(clock.now_ns() - small_start);
  return {{"read_bytes_s", static_cast<double>(read) / large_s},
          {"small_reads_s", static_cast<double>(reads) / small_s},
          {"read_how", direct ? "direct" : "cached"}};
}

json measure_decode(const SpeedOptions& options) {
  constexpr int kWidth = 1024;
  constexpr int kHeight = 768;
  const std::string bytes = data::encode_jpeg(photograph(kWidth, kHeight));
  const std::span<const std::byte> view(reinterpret_cast<const std::byte*>(bytes.data()), bytes.size());
  data::ImageDecoder decoder;
  decoder.decode_region(view, "test picture", {});  // warm-up: allocates the decoder's memory
  Clock& clock = system_clock();
  const std::int64_t start = clock.now_ns();
  const auto limit_ns = nanoseconds(options.decode_s);
  int pictures = 0;
  while (pictures == 0 || clock.now_ns() - start < limit_ns) {
    decoder.decode_region(view, "test picture", {});
    ++pictures;
  }
  const double rate = pictures / seconds(clock.now_ns() - start);
  return {{"jpeg_images_s", rate},
          {"jpeg_pixels_s", rate * kWidth * kHeight},
          {"picture", fmt::format("{}x{}", kWidth, kHeight)},
          {"jpeg_bytes", bytes.size()}};
}

json measure_speed(const SpeedOptions& options) {
  const std::string program = (program_folder() / "unidle-train").string();
  if (!fs::exists(program)) {
    throw Error(ErrorCode::kMissing, program,
                "--speed measures arithmetic with the training engine, which was not built",
                "./dev build makes it; it needs torch, which ./dev setup installs");
  }
  Progress progress("measuring", 3);
  json speed;
  speed["disk"] = measure_disk(options);
  progress.update(1, "decoder");
  speed["decode"] = measure_decode(options);
  progress.update(2, "arithmetic");
  Command command;
  command.argv = {program, "speed", "--format", "json"};
  command.in = Command::Stream::kNull;
  const Finished finished = run_to_end(command);
  const json answer = parse_json(finished.out);
  if (!finished.status.ok() || answer.is_discarded()) {
    throw Error(ErrorCode::kChild, program, fmt::format("measuring failed: {}", finished.err.substr(0, 300)));
  }
  speed["torch"] = answer;
  return speed;
}

}  // namespace unidle::check
