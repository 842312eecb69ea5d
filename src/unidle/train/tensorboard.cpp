#include "unidle/train/tensorboard.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <climits>
#include <protozero/pbf_builder.hpp>
#include <span>

#include "unidle/base/checksum.h"
#include "unidle/base/clock.h"
#include "unidle/base/error.h"
#include "unidle/base/log.h"

namespace unidle::train {

namespace {

// Field numbers as in TensorBoard's event.proto and summary.proto.
enum class EventField : protozero::pbf_tag_type {
  kWallTime = 1,
  kStep = 2,
  kFileVersion = 3,
  kSummary = 5,
  kSession = 7
};
enum class SummaryField : protozero::pbf_tag_type { kValue = 1 };
enum class ValueField : protozero::pbf_tag_type { kTag = 1, kSimpleValue = 2 };
enum class SessionField : protozero::pbf_tag_type { kStatus = 1 };
constexpr std::int32_t kSessionStart = 1;

using EventBuilder = protozero::pbf_builder<EventField>;

constexpr std::size_t kMostWaiting = 1 << 16;  // bytes

/// The name starts as TensorBoard's own do: it reads the files of a folder in the order of their names.
std::filesystem::path event_file_path(const std::filesystem::path& folder) {
  static std::atomic<int> count{0};
  std::array<char, HOST_NAME_MAX + 1> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0 || host[0] == '\0') {
    host = {"localhost"};
  }
  return folder / fmt::format("events.out.tfevents.{:010}.{}.{}.{}", system_clock().wall_ns() / kNsPerSecond,
                              host.data(), ::getpid(), count++);
}

/// TFRecord masks checksums, because a checksum over data with embedded checksums is weak.
std::uint32_t masked_checksum(std::string_view bytes) {
  const std::uint32_t sum = crc32c(std::as_bytes(std::span(bytes)));
  return ((sum >> 15) | (sum << 17)) + 0xa282ead8U;
}

/// Least significant byte first.
template <typename Number>
std::string little_endian(Number number) {
  std::string bytes;
  for (std::size_t i = 0; i < sizeof(Number); ++i) {
    bytes += static_cast<char>(number >> (8 * i));
  }
  return bytes;
}

/// The fields that all events begin with.
EventBuilder event_of(std::string& event, std::uint64_t steps) {
  EventBuilder builder(event);
  builder.add_double(EventField::kWallTime, seconds(system_clock().wall_ns()));
  builder.add_int64(EventField::kStep, static_cast<std::int64_t>(steps));
  return builder;
}

}  // namespace

Tensorboard::Tensorboard(const std::filesystem::path& folder, Disk& disk)
    : path_(event_file_path(folder)), disk_(disk), written_ns_(system_clock().now_ns()), last_ns_(written_ns_) {
  if (const int failure = disk_.make_folders(folder); failure != 0) {
    throw system_error(ErrorCode::kIo, folder.string(), "the folder for TensorBoard cannot be made", failure);
  }
  int file = -1;
  if (const int failure = disk_.create(path_, file); failure != 0) {
    throw system_error(ErrorCode::kIo, path_.string(), "cannot be made", failure);
  }
  file_.reset(file);
  std::string event;
  event_of(event, 0).add_string(EventField::kFileVersion, "brain.Event:2");
  add(event);
  write_out();
}

Tensorboard::~Tensorboard() { write_out(); }

void Tensorboard::begin(std::uint64_t steps, std::uint64_t samples) {
  last_ = {.steps = steps, .samples = samples, .input_wait_ns = 0, .learning_rate = 0};
  last_ns_ = system_clock().now_ns();
  if (steps > 0) {
    std::string event;
    EventBuilder builder = event_of(event, steps + 1);
    protozero::pbf_builder<SessionField>(builder, EventField::kSession).add_enum(SessionField::kStatus, kSessionStart);
    add(event);
  }
}

void Tensorboard::loss(std::uint64_t steps, double value) { scalar("train/loss", steps, value); }

void Tensorboard::metric(std::string_view name, std::uint64_t steps, double value) {
  scalar(fmt::format("validation/{}", name), steps, value);
}

void Tensorboard::pace(const Pace& now) {
  const std::int64_t now_ns = system_clock().now_ns();
  const std::int64_t elapsed_ns = now_ns - last_ns_;
  if (elapsed_ns < kNsPerSecond) {
    return;
  }
  const double elapsed = seconds(elapsed_ns);
  scalar("train/samples_per_s", now.steps, static_cast<double>(now.samples - last_.samples) / elapsed);
  scalar("train/input_wait", now.steps,
         static_cast<double>(now.input_wait_ns - last_.input_wait_ns) / static_cast<double>(elapsed_ns));
  scalar("train/learning_rate", now.steps, now.learning_rate);
  last_ = now;
  last_ns_ = now_ns;
}

void Tensorboard::scalar(std::string_view tag, std::uint64_t steps, double value) {
  std::string event;
  {
    EventBuilder builder = event_of(event, steps);
    protozero::pbf_builder<SummaryField> summary(builder, EventField::kSummary);
    protozero::pbf_builder<ValueField> one(summary, SummaryField::kValue);
    one.add_string(ValueField::kTag, tag.data(), tag.size());
    one.add_float(ValueField::kSimpleValue, static_cast<float>(value));
  }
  add(event);
}

void Tensorboard::add(std::string_view event) {
  const std::string length = little_endian(static_cast<std::uint64_t>(event.size()));
  waiting_ += length;
  waiting_ += little_endian(masked_checksum(length));
  waiting_ += event;
  waiting_ += little_endian(masked_checksum(event));
  if (waiting_.size() >= kMostWaiting || system_clock().now_ns() - written_ns_ >= kNsPerSecond) {
    write_out();
  }
}

void Tensorboard::write_out() {
  written_ns_ = system_clock().now_ns();
  if (file_ && !waiting_.empty()) {
    if (const int failure = disk_.write(file_.get(), waiting_); failure != 0) {
      spdlog::warn("{}",
                   system_error(ErrorCode::kIo, path_.string(),
                                "training goes on without curves for TensorBoard, which cannot be written", failure)
                       .what());
      file_.reset();
    }
  }
  waiting_.clear();
}

}  // namespace unidle::train
