#include "unidle/logs/job_files.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <fstream>

#include "unidle/base/clock.h"
#include "unidle/base/files.h"

namespace unidle::logs {
namespace {

/// A line per second from 08:00:00 on; compresses badly.
std::string noisy_log(int seconds) {
  std::string text;
  std::uint64_t noise = 1;
  for (int i = 0; i < seconds; ++i) {
    noise = noise * 6364136223846793005ULL + 1442695040888963407ULL;
    text += fmt::format("2026-11-21 08:{:02}:{:02} hash {:016x}{:016x}\n", i / 60, i % 60, noise, noise * noise);
  }
  return text;
}

void write_packed(const std::filesystem::path& path, const std::string& text) {
  gzFile file = gzopen(path.c_str(), "wb");
  gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
  gzclose(file);
}

TEST(TimeRange, OfAPackedLogIsThatOfAllItsLines) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "slurm-77.out.gz";
  std::string text = noisy_log(3600);
  write_packed(path, text);
  ASSERT_GT(std::filesystem::file_size(path), 64U << 10U) << "one that is cut off after its first 64 KiB";
  const auto range = time_range(path);
  ASSERT_TRUE(range);
  EXPECT_EQ(range->last_ns - range->first_ns, 3599 * kNsPerSecond);
}

TEST(TimeRange, OfADamagedLogIsThatBeforeTheDamage) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "slurm-77.out.gz";
  write_packed(path, noisy_log(3600));
  std::filesystem::resize_file(path, std::filesystem::file_size(path) / 2);
  const auto range = time_range(path);
  ASSERT_TRUE(range);
  EXPECT_GT(range->last_ns, range->first_ns);
  std::ofstream(path) << "\x1f\x8bno gzip";
  EXPECT_FALSE(time_range(path));
  EXPECT_FALSE(time_range(folder.path() / "not there"));
}

}  // namespace
}  // namespace unidle::logs
