#include "unidle/cache/protocol.h"

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <set>

#include "unidle/base/error.h"
#include "unidle/base/json.h"

namespace unidle::cache::protocol {

namespace {

constexpr std::array<char, 4> kFrameMagic = {'U', 'P', 'P', '1'};

struct FrameHead {
  std::array<char, 4> magic;
  std::uint32_t head_bytes;
  std::uint64_t data_bytes;
};
static_assert(sizeof(FrameHead) == 16);

[[noreturn]] void refuse_frame(std::string why) { throw Error(ErrorCode::kInput, "predictor", std::move(why)); }

/// A non-negative whole number; nothing for anything else.
std::optional<std::uint64_t> count_of(const nlohmann::json& value) {
  const bool good = value.is_number_unsigned() || (value.is_number_integer() && value.get<std::int64_t>() >= 0);
  return good ? std::optional(value.get<std::uint64_t>()) : std::nullopt;
}

/// The extents of a tensor; throws unless they are a list of whole numbers.
std::vector<std::uint64_t> read_shape(const nlohmann::json& tensor) {
  const auto found = tensor.find("shape");
  if (found == tensor.end() || !found->is_array() || found->size() > 32) {
    refuse_frame("a tensor without a shape");
  }
  std::vector<std::uint64_t> shape;
  for (const nlohmann::json& extent : *found) {
    const auto count = count_of(extent);
    if (!count) {
      refuse_frame("an invalid shape");
    }
    shape.push_back(*count);
  }
  return shape;
}

Tensor read_tensor(const nlohmann::json& described, std::string_view& data) {
  if (!described.is_object()) {
    refuse_frame("a tensor that is not an object");
  }
  const auto type = dtype_from(text_in(described, "dtype"));
  if (!type) {
    refuse_frame("a tensor of an unknown dtype");
  }
  Tensor tensor{text_in(described, "name"), *type, read_shape(described), {}};
  const auto bytes = array_bytes(tensor.dtype, tensor.shape);
  if (!bytes || *bytes > data.size()) {
    refuse_frame("less data than its tensors have");
  }
  const auto part = std::as_bytes(std::span(data.substr(0, *bytes)));
  tensor.data.assign(part.begin(), part.end());
  data.remove_prefix(*bytes);
  return tensor;
}

Prediction read_item(const nlohmann::json& item, std::string_view& data) {
  if (!item.is_object()) {
    refuse_frame("an item that is not an object");
  }
  Prediction prediction;
  if (item.contains("error")) {
    prediction.error = text_in(item, "error");
    if (prediction.error.empty()) {
      prediction.error = "no reason given";
    }
    return prediction;
  }
  const auto tensors = item.find("tensors");
  if (tensors == item.end() || !tensors->is_array()) {
    refuse_frame("an item with neither tensors nor an error");
  }
  std::set<std::string> names;
  for (const nlohmann::json& described : *tensors) {
    prediction.tensors.push_back(read_tensor(described, data));
    if (!names.insert(prediction.tensors.back().name).second) {
      refuse_frame("two tensors of a name in an item");
    }
  }
  return prediction;
}

void expect_type(const Frame& frame, std::string_view type) {
  if (!frame.head.is_object() || text_in(frame.head, "type") != type) {
    refuse_frame(fmt::format("something else where a {} was expected", type));
  }
}

}  // namespace

std::string encode(const nlohmann::json& head, std::string_view data) {
  const std::string text = head.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  const FrameHead frame{kFrameMagic, static_cast<std::uint32_t>(text.size()), data.size()};
  std::string bytes(reinterpret_cast<const char*>(&frame), sizeof frame);
  bytes.reserve(sizeof frame + text.size() + data.size());
  return bytes.append(text).append(data);
}

std::optional<Frame> FrameReader::next() {
  FrameHead frame{};
  const std::size_t seen = std::min(buffer_.size(), kFrameMagic.size());
  if (std::memcmp(buffer_.data(), kFrameMagic.data(), seen) != 0) {
    refuse_frame("its output does not follow the protocol (does it print to its standard output?)");
  }
  if (buffer_.size() < sizeof frame) {
    return std::nullopt;
  }
  std::memcpy(&frame, buffer_.data(), sizeof frame);
  if (frame.head_bytes > limits_.head_bytes || frame.data_bytes > limits_.data_bytes) {
    refuse_frame(fmt::format("a frame of {} and {} bytes is too large", frame.head_bytes, frame.data_bytes));
  }
  const std::size_t whole = sizeof frame + frame.head_bytes + frame.data_bytes;
  if (buffer_.size() < whole) {
    return std::nullopt;
  }
  Frame result{parse_json(std::string_view(buffer_).substr(sizeof frame, frame.head_bytes)),
               buffer_.substr(sizeof frame + frame.head_bytes, frame.data_bytes)};
  if (result.head.is_discarded()) {
    refuse_frame("a frame whose header is not JSON");
  }
  buffer_.erase(0, whole);
  return result;
}

std::string hello(const nlohmann::json& parameters) {
  return encode({{"type", "hello"}, {"protocol", kVersion}, {"parameters", parameters}});
}

std::string batch(std::uint64_t id, std::span<const std::string> inputs) {
  nlohmann::json lengths = nlohmann::json::array();
  std::string data;
  for (const std::string& input : inputs) {
    lengths.push_back(input.size());
    data += input;
  }
  return encode({{"type", "batch"}, {"batch", id}, {"lengths", lengths}}, data);
}

std::string bye() { return encode({{"type", "bye"}}); }

PredictorFacts read_ready(const Frame& frame) {
  expect_type(frame, "ready");
  if (whole_in(frame.head, "protocol") != kVersion) {
    refuse_frame(fmt::format("it speaks another version of the protocol than {}", kVersion));
  }
  PredictorFacts facts{text_in(frame.head, "identity"), text_in(frame.head, "version")};
  if (facts.identity.empty() || facts.version.empty()) {
    refuse_frame("it says neither identity nor version");
  }
  return facts;
}

std::vector<Prediction> read_result(const Frame& frame, std::uint64_t id, std::size_t count) {
  expect_type(frame, "result");
  if (whole_in(frame.head, "batch") != static_cast<std::int64_t>(id)) {
    refuse_frame("the answer to another batch");
  }
  const auto items = frame.head.find("items");
  if (items == frame.head.end() || !items->is_array() || items->size() != count) {
    refuse_frame(fmt::format("an answer that has not {} items", count));
  }
  std::vector<Prediction> predictions;
  std::string_view data = frame.data;
  for (const nlohmann::json& item : *items) {
    predictions.push_back(read_item(item, data));
  }
  if (!data.empty()) {
    refuse_frame("more data than its tensors have");
  }
  return predictions;
}

nlohmann::json read_hello(const Frame& frame) {
  expect_type(frame, "hello");
  if (whole_in(frame.head, "protocol") != kVersion) {
    refuse_frame(fmt::format("a hello in another version of the protocol than {}", kVersion));
  }
  const auto parameters = frame.head.find("parameters");
  if (parameters == frame.head.end() || !parameters->is_object()) {
    refuse_frame("a hello without parameters");
  }
  return *parameters;
}

std::optional<Question> read_question(const Frame& frame) {
  if (frame.head.is_object() && text_in(frame.head, "type") == "bye") {
    return std::nullopt;
  }
  expect_type(frame, "batch");
  const auto id = whole_in(frame.head, "batch");
  const auto lengths = frame.head.find("lengths");
  if (!id || *id < 0 || lengths == frame.head.end() || !lengths->is_array()) {
    refuse_frame("a batch without a number or without lengths");
  }
  Question question{static_cast<std::uint64_t>(*id), {}};
  std::string_view data = frame.data;
  for (const nlohmann::json& length : *lengths) {
    const auto bytes = count_of(length);
    if (!bytes || *bytes > data.size()) {
      refuse_frame("less data than its inputs have");
    }
    question.inputs.emplace_back(data.substr(0, *bytes));
    data.remove_prefix(*bytes);
  }
  if (!data.empty()) {
    refuse_frame("more data than its inputs have");
  }
  return question;
}

std::string ready(const PredictorFacts& facts) {
  return encode({{"type", "ready"}, {"protocol", kVersion}, {"identity", facts.identity}, {"version", facts.version}});
}

std::string result(std::uint64_t id, std::span<const Prediction> predictions) {
  nlohmann::json items = nlohmann::json::array();
  std::string data;
  for (const Prediction& prediction : predictions) {
    if (!prediction.error.empty()) {
      items.push_back({{"error", prediction.error}});
      continue;
    }
    nlohmann::json tensors = nlohmann::json::array();
    for (const Tensor& tensor : prediction.tensors) {
      tensors.push_back({{"name", tensor.name}, {"dtype", to_string(tensor.dtype)}, {"shape", tensor.shape}});
      data.append(reinterpret_cast<const char*>(tensor.data.data()), tensor.data.size());
    }
    items.push_back({{"tensors", std::move(tensors)}});
  }
  return encode({{"type", "result"}, {"batch", id}, {"items", std::move(items)}}, data);
}

}  // namespace unidle::cache::protocol
