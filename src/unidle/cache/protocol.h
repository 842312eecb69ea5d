// What unidle and a predictor's program say to each other, as docs/predictor-protocol.md has it. Pure: no pipes here.
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

/// A frame as bytes.
std::string encode(const nlohmann::json& head, std::string_view data = {});

/// Takes bytes as they come and gives frames. After a failure it is of no use. Not thread-safe.
class FrameReader {
 public:
  explicit FrameReader(Limits limits = {}) : limits_(limits) {}
  void feed(std::string_view bytes) { buffer_.append(bytes); }
  /// The next frame when all of it has come. Throws kInput for what is no frame.
  std::optional<Frame> next();
  /// Bytes that belong to no frame yet.
  std::size_t left_over() const { return buffer_.size(); }

 private:
  Limits limits_;
  std::string buffer_;
};

std::string hello(const nlohmann::json& parameters);
std::string batch(std::uint64_t id, std::span<const std::string> inputs);
std::string bye();

/// What a program says of itself. Throws kInput when it is no such thing, or of another version.
PredictorFacts read_ready(const Frame& frame);

/// The answer to batch `id` of `count` inputs. Throws kInput when it is not: another batch, too few or too many, data
/// that is not as long as its tensors.
std::vector<Prediction> read_result(const Frame& frame, std::uint64_t id, std::size_t count);

/// The program's side of the same.
struct Question {
  std::uint64_t id = 0;
  std::vector<std::string> inputs;
};

/// The parameters of a hello. Throws kInput when it is none, or of another version.
nlohmann::json read_hello(const Frame& frame);
/// Nothing for a bye. Throws kInput for what is neither.
std::optional<Question> read_question(const Frame& frame);
std::string ready(const PredictorFacts& facts);
std::string result(std::uint64_t id, std::span<const Prediction> predictions);

}  // namespace unidle::cache::protocol
