// The messages between unidle and a predictor's program (docs/predictor-protocol.md). Pure: no pipes here.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "unidle/cache/predictor.h"

namespace unidle::cache::protocol {

constexpr std::int64_t kVersion = 1;

struct Frame {
  nlohmann::json head;
  std::string data;
};

struct Limits {
  std::uint64_t head_bytes = 64 << 20;
  std::uint64_t data_bytes = std::uint64_t{4} << 30;
};

/// Encodes a frame.
std::string encode(const nlohmann::json& head, std::string_view data = {});

/// Assembles frames from bytes. Unusable after an exception. Not thread-safe.
class FrameReader {
 public:
  explicit FrameReader(Limits limits = {}) : limits_(limits) {}
  void feed(std::string_view bytes) { buffer_.append(bytes); }
  /// Returns the next frame when it is complete. Throws kInput for an invalid frame.
  std::optional<Frame> next();
  /// Bytes that do not belong to a frame yet.
  std::size_t left_over() const { return buffer_.size(); }

 private:
  Limits limits_;
  std::string buffer_;
};

std::string hello(const nlohmann::json& parameters);
std::string batch(std::uint64_t id, std::span<const std::string> inputs);
std::string bye();

/// Parses a program's ready message. Throws kInput when it is invalid or of another version.
PredictorFacts read_ready(const Frame& frame);

/// Parses the answer to batch `id` of `count` inputs. Throws kInput when it is invalid: another batch, another count,
/// or data whose length does not match its tensors.
std::vector<Prediction> read_result(const Frame& frame, std::uint64_t id, std::size_t count);

/// The program's side of the protocol.
struct Question {
  std::uint64_t id = 0;
  std::vector<std::string> inputs;
};

/// Returns the parameters of a hello. Throws kInput when it is invalid or of another version.
nlohmann::json read_hello(const Frame& frame);
/// Returns nothing for a bye. Throws kInput for any other message.
std::optional<Question> read_question(const Frame& frame);
std::string ready(const PredictorFacts& facts);
std::string result(std::uint64_t id, std::span<const Prediction> predictions);

}  // namespace unidle::cache::protocol
