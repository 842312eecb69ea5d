// Reads files by the framing that TFRecord documents; tests/tensorboard_test.sh reads them with TensorBoard.
#include "unidle/train/tensorboard.h"

#include <gmock/gmock.h>

#include <optional>
#include <protozero/pbf_reader.hpp>
#include <span>
#include <vector>

#include "unidle/base/checksum.h"
#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/base/testing/failing_disk.h"

namespace unidle::train {
namespace {

using ::testing::HasSubstr;

struct Told {
  std::int64_t steps = 0;
  std::string tag;
  float value = 0;
  std::string version;
  bool session_begins = false;
};

template <typename Number>
Number number_at(std::string_view bytes, std::size_t at) {
  Number number = 0;
  for (std::size_t i = 0; i < sizeof(Number); ++i) {
    number |= static_cast<Number>(static_cast<unsigned char>(bytes.at(at + i))) << (8 * i);
  }
  return number;
}

/// The events' bytes; verifies every checksum.
std::vector<std::string> events_of(const std::string& bytes) {
  const auto masked = [](std::string_view part) {
    const std::uint32_t sum = crc32c(std::as_bytes(std::span(part)));
    return static_cast<std::uint32_t>(((sum >> 15) | (sum << 17)) + 0xa282ead8U);
  };
  std::vector<std::string> events;
  for (std::size_t at = 0; at < bytes.size();) {
    const auto length = static_cast<std::size_t>(number_at<std::uint64_t>(bytes, at));
    EXPECT_EQ(number_at<std::uint32_t>(bytes, at + 8), masked(std::string_view(bytes).substr(at, 8)));
    events.push_back(bytes.substr(at + 12, length));
    EXPECT_EQ(number_at<std::uint32_t>(bytes, at + 12 + length), masked(events.back()));
    at += 16 + length;
  }
  return events;
}

Told parsed(const std::string& bytes) {
  Told told;
  protozero::pbf_reader event(bytes);
  while (event.next()) {
    switch (event.tag()) {
      case 2: told.steps = event.get_int64(); break;
      case 3: told.version = event.get_string(); break;
      case 5: {
        protozero::pbf_reader summary(event.get_message());
        EXPECT_TRUE(summary.next(1));
        protozero::pbf_reader value(summary.get_message());
        while (value.next()) {
          if (value.tag() == 1) {
            told.tag = value.get_string();
          } else {
            EXPECT_EQ(value.tag(), 2U);
            told.value = value.get_float();
          }
        }
        break;
      }
      case 7: {
        protozero::pbf_reader session(event.get_message());
        told.session_begins = session.next(1) && session.get_enum() == 1;
        break;
      }
      default: event.skip();
    }
  }
  return told;
}

std::vector<Told> told_by(const std::filesystem::path& file) {
  std::vector<Told> told;
  for (const std::string& event : events_of(read_file(file))) {
    told.push_back(parsed(event));
  }
  return told;
}

TEST(Tensorboard, HasWhatItWasTold) {
  const TemporaryFolder folder;
  std::filesystem::path file;
  {
    Tensorboard tensorboard(folder.path() / "runs/first");
    file = tensorboard.path();
    tensorboard.begin(0, 0);
    tensorboard.loss(1, 0.5);
    tensorboard.metric("rmse", 300, -2.25);
  }
  EXPECT_THAT(file.filename().string(), ::testing::StartsWith("events.out.tfevents."));
  const std::vector<Told> told = told_by(file);
  ASSERT_EQ(told.size(), 3U);
  EXPECT_EQ(told[0].version, "brain.Event:2");
  EXPECT_EQ(told[1].tag, "train/loss");
  EXPECT_EQ(told[1].steps, 1);
  EXPECT_EQ(told[1].value, 0.5F);
  EXPECT_EQ(told[2].tag, "validation/rmse");
  EXPECT_EQ(told[2].steps, 300);
  EXPECT_EQ(told[2].value, -2.25F);
}

TEST(Tensorboard, ARunThatGoesOnTakesBackLaterSteps) {
  const TemporaryFolder folder;
  Tensorboard tensorboard(folder.path());
  tensorboard.begin(40, 160);
  tensorboard.write_out();
  const std::vector<Told> told = told_by(tensorboard.path());
  ASSERT_EQ(told.size(), 2U);
  EXPECT_TRUE(told[1].session_begins);
  EXPECT_EQ(told[1].steps, 41);
}

TEST(Tensorboard, RatesWaitForASecond) {
  const TemporaryFolder folder;
  Tensorboard tensorboard(folder.path());
  tensorboard.begin(0, 0);
  tensorboard.pace({.steps = 1, .samples = 4, .input_wait_ns = 1, .learning_rate = 0.1});
  tensorboard.write_out();
  EXPECT_EQ(told_by(tensorboard.path()).size(), 1U);
}

TEST(Tensorboard, AFolderThatCannotBeMadeIsNamed) {
  const TemporaryFolder folder;
  write_file_atomic(folder.path() / "file", "");
  try {
    Tensorboard tensorboard(folder.path() / "file/runs");
    FAIL() << "it was made";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kIo);
    EXPECT_EQ(error.exit_code(), 2);
    EXPECT_THAT(error.what(), HasSubstr("file/runs"));
  }
}

TEST(Tensorboard, AFullDiskEndsTheCurvesAlone) {
  const TemporaryFolder folder;
  unidle::testing::FailingDisk disk;
  disk.error = ENOSPC;
  disk.fail_from = 3;  // folder, file, first event
  Tensorboard tensorboard(folder.path(), disk);
  tensorboard.loss(1, 1);
  tensorboard.write_out();
  EXPECT_TRUE(disk.failed());
  const std::uintmax_t size = std::filesystem::file_size(tensorboard.path());
  disk.fail_from = 1000;
  tensorboard.loss(2, 1);
  tensorboard.write_out();
  EXPECT_EQ(std::filesystem::file_size(tensorboard.path()), size) << "there is a hole in it";
}

}  // namespace
}  // namespace unidle::train
