// The predictor protocol: its bytes, and programs that follow or violate it.
#include "unidle/cache/protocol.h"

#include <gmock/gmock.h>

#include <fstream>

#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/cache/command_predictor.h"

namespace unidle::cache {
namespace {

using nlohmann::json;
using ::testing::AnyOf;
using ::testing::HasSubstr;

TEST(Protocol, FramesArriveWholeHoweverTheyAreCut) {
  const std::string bytes = protocol::encode({{"type", "one"}}, "data") + protocol::encode({{"type", "two"}}) +
                            protocol::encode({{"type", "three"}}, std::string(1000, 'x'));
  for (const std::size_t piece : {1U, 3U, 16U, 17U, 100U, 5000U}) {
    protocol::FrameReader reader;
    std::vector<std::string> types;
    std::size_t data = 0;
    for (std::size_t at = 0; at < bytes.size(); at += piece) {
      reader.feed(std::string_view(bytes).substr(at, piece));
      while (auto frame = reader.next()) {
        types.push_back(frame->head["type"]);
        data += frame->data.size();
      }
    }
    EXPECT_EQ(types, (std::vector<std::string>{"one", "two", "three"}));
    EXPECT_EQ(data, 1004U);
    EXPECT_EQ(reader.left_over(), 0U);
  }
}

TEST(Protocol, WhatIsNoFrameIsKnownByItsFirstByte) {
  protocol::FrameReader reader;
  reader.feed("H");
  EXPECT_THROW(reader.next(), Error);
  protocol::FrameReader large(protocol::Limits{100, 100});
  large.feed(protocol::encode({{"type", "x"}}, std::string(101, 'x')).substr(0, 16));
  EXPECT_THROW(large.next(), Error);
  protocol::FrameReader broken;
  std::string bytes = protocol::encode({{"type", "x"}});
  bytes[17] = '\xff';
  broken.feed(bytes);
  EXPECT_THROW(broken.next(), Error);
}

json tensor_of(std::initializer_list<int> shape) { return {{"name", "t"}, {"dtype", "float32"}, {"shape", shape}}; }

TEST(Protocol, ResultsAreTakenOnlyWhenAllFits) {
  const json good = {{"type", "result"}, {"batch", 7}, {"items", {{{"tensors", {tensor_of({2})}}}, {{"error", "no"}}}}};
  const auto read = [](const json& head, std::size_t bytes, std::size_t count = 2, std::uint64_t id = 7) {
    return protocol::read_result({head, std::string(bytes, '\1')}, id, count);
  };
  const auto predictions = read(good, 8);
  EXPECT_EQ(predictions[0].tensors[0].data.size(), 8U);
  EXPECT_EQ(predictions[1].error, "no");
  EXPECT_THROW(read(good, 7), Error);
  EXPECT_THROW(read(good, 9), Error);
  EXPECT_THROW(read(good, 8, 3), Error);
  EXPECT_THROW(read(good, 8, 2, 8), Error);
  for (
      const char* patch :
      {R"({"type": "ready"})", R"({"items": {}})", R"({"items": [1, 2]})", R"({"items": [{}, {}]})",
       R"({"items": [{"tensors": [1]}, {"error": "no"}]})", R"({"batch": "7"})",
       R"({"items": [{"tensors": [{"name": "t", "dtype": "float32"}]}, {"error": "no"}]})",
       R"({"items": [{"tensors": [{"name": "t", "dtype": "object", "shape": [2]}]}, {"error": "no"}]})",
       R"({"items": [{"tensors": [{"name": "t", "dtype": "float32", "shape": [-2]}]}, {"error": "no"}]})",
       R"({"items": [{"tensors": [{"name": "t", "dtype": "float32", "shape": [4294967296, 4294967296]}]}, {"error": "no"}]})"}) {
    json wrong = good;
    wrong.merge_patch(json::parse(patch));
    EXPECT_THROW(read(wrong, 8), Error) << patch;
  }
}

protocol::Frame frame_of(std::string_view bytes) {
  protocol::FrameReader reader;
  reader.feed(bytes);
  return reader.next().value();
}

TEST(Protocol, AProgramReadsWhatIsWrittenAndIsRead) {
  EXPECT_EQ(protocol::read_hello(frame_of(protocol::hello({{"scale", 2}}))), json({{"scale", 2}}));
  const std::vector<std::string> inputs = {"ACD", "", std::string("\0\xff", 2)};
  const auto question = protocol::read_question(frame_of(protocol::batch(9, inputs)));
  ASSERT_TRUE(question);
  EXPECT_EQ(question->id, 9U);
  EXPECT_EQ(question->inputs, inputs);
  EXPECT_FALSE(protocol::read_question(frame_of(protocol::bye())));
  EXPECT_EQ(protocol::read_ready(frame_of(protocol::ready({"name", "7"}))), (PredictorFacts{"name", "7"}));
  const std::vector<float> values = {1, 2, 3, 4, 5, 6};
  const std::vector<Prediction> predictions = {
      {{make_tensor<float>("a", DType::kF32, {3, 2}, values), make_tensor<float>("b", DType::kF32, {0}, {})}, ""},
      {{}, "is wrong"}};
  const auto read = protocol::read_result(frame_of(protocol::result(4, predictions)), 4, 2);
  EXPECT_EQ(read[0].tensors[0].data, predictions[0].tensors[0].data);
  EXPECT_EQ(read[0].tensors[0].shape, (std::vector<std::uint64_t>{3, 2}));
  EXPECT_EQ(read[0].tensors[1].name, "b");
  EXPECT_EQ(read[1].error, "is wrong");
}

TEST(Protocol, AProgramTakesOnlyWholeQuestions) {
  const json good = {{"type", "batch"}, {"batch", 1}, {"lengths", {1, 2}}};
  EXPECT_NO_THROW(protocol::read_question({good, "abc"}));
  EXPECT_THROW(protocol::read_question({good, "ab"}), Error);
  EXPECT_THROW(protocol::read_question({good, "abcd"}), Error);
  for (const char* patch : {R"({"type": "result"})", R"({"batch": -1})", R"({"batch": null})", R"({"lengths": 3})",
                            R"({"lengths": [-1, 4]})", R"({"lengths": ["a", 2]})"}) {
    json wrong = good;
    wrong.merge_patch(json::parse(patch));
    EXPECT_THROW(protocol::read_question({wrong, "abc"}), Error) << patch;
  }
  for (const char* wrong : {R"({"type": "hello", "protocol": 2, "parameters": {}})",
                            R"({"type": "hello", "protocol": 1})", R"({"type": "ready", "protocol": 1})", "[1]"}) {
    EXPECT_THROW(protocol::read_hello({json::parse(wrong), ""}), Error) << wrong;
  }
}

/// A program as docs/predictor-protocol.md requires, plus whatever `extra` adds.
constexpr const char* kProgram = R"python(
import json, os, struct, sys, time
source, sink = sys.stdin.buffer, sys.stdout.buffer
def read():
    head = source.read(16)
    if len(head) < 16: sys.exit(0)
    magic, head_bytes, data_bytes = struct.unpack("<4sIQ", head)
    assert magic == b"UPP1"
    return json.loads(source.read(head_bytes)), source.read(data_bytes)
def write(head, data=b""):
    text = json.dumps(head).encode()
    sink.write(struct.pack("<4sIQ", b"UPP1", len(text), len(data)) + text + data)
    sink.flush()
mode = sys.argv[1]
hello, _ = read()
assert hello["protocol"] == 1
if mode == "never-ready": time.sleep(1000)
if mode == "dies-at-start": sys.exit("no weights here")
if mode == "leaves": sys.stderr.write("not installed"); sys.exit(2)
if mode == "prints": print("loading the model", flush=True)
write({"type": "ready", "protocol": 2 if mode == "other-protocol" else 1, "identity": "test", "version": "1"})
if mode == "talks": write({"type": "result", "batch": 1, "items": []})
while True:
    head, data = read()
    if head["type"] == "bye": sys.exit(0)
    items, out = [], b""
    for length in head["lengths"]:
        text, data = data[:length], data[length:]
        if text == b"bad": items.append({"error": "is bad"}); continue
        items.append({"tensors": [{"name": "bytes", "dtype": "uint8", "shape": [length]}]})
        out += text
    if mode == "hangs": time.sleep(1000)
    if mode == "dies": os.kill(os.getpid(), 9)
    if mode == "exits": sys.exit("cannot go on")
    if mode == "exits-with-2": sys.exit(2)
    if mode == "rubbish": sink.write(os.urandom(100000)); sink.flush()
    if mode == "floods":
        while True: sink.write(bytes(1 << 20))
    if mode == "too-little": out = out[:-1]
    if mode == "too-much": out += b"x"
    if mode == "too-few": items = items[:-1]
    if mode == "another-batch": head["batch"] += 1
    if mode == "half": sink.write(struct.pack("<4sIQ", b"UPP1", 100, 0)); sink.flush(); sys.exit(0)
    write({"type": "result", "batch": head["batch"], "items": items}, out)
)python";

class CommandPredictorTest : public ::testing::Test {
 protected:
  CommandOptions options(const std::string& mode) {
    std::ofstream(folder_.path() / "predictor.py") << kProgram;
    CommandOptions options;
    options.command = {"python3", "-S", (folder_.path() / "predictor.py").string(), mode};
    options.batch_limit_ns = 20'000'000'000;
    return options;
  }
  /// The error message of a batch; empty when it succeeds.
  std::string failure_of(const CommandOptions& options) {
    try {
      CommandPredictor predictor(options, {});
      const std::vector<std::string> inputs = {"ACD", "EFGH"};
      predictor.predict(inputs, {});
      predictor.predict(inputs, {});
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kChild);
      return error.what();
    }
    return "";
  }

 private:
  TemporaryFolder folder_;
};

TEST_F(CommandPredictorTest, SpeaksWithAProgram) {
  CommandPredictor predictor(options("good"), {});
  EXPECT_EQ(predictor.facts().identity, "test");
  std::vector<std::string> inputs(3000, "ACDEFGHIKL");
  inputs[1] = "bad";
  for (int batch = 0; batch < 3; ++batch) {
    const auto predictions = predictor.predict(inputs, {});
    ASSERT_EQ(predictions.size(), inputs.size());
    EXPECT_EQ(predictions[1].error, "is bad");
    EXPECT_EQ(predictions[2999].tensors[0].data.size(), 10U);
  }
}

TEST_F(CommandPredictorTest, SaysWhatAProgramDidWrong) {
  EXPECT_EQ(failure_of(options("good")), "");
  EXPECT_THAT(failure_of(options("dies-at-start")), HasSubstr("no weights here"));
  EXPECT_THAT(failure_of(options("prints")), HasSubstr("standard output"));
  EXPECT_THAT(failure_of(options("other-protocol")), HasSubstr("another version"));
  EXPECT_THAT(failure_of(options("talks")),  // which of the two depends on timing
              AnyOf(HasSubstr("before it had been asked"), HasSubstr("has not 2 items")));
  EXPECT_THAT(failure_of(options("dies")), HasSubstr("signal 9"));
  EXPECT_THAT(failure_of(options("exits")), HasSubstr("cannot go on"));
  EXPECT_THAT(failure_of(options("exits-with-2")), HasSubstr("exit code 2"));
  EXPECT_THAT(failure_of(options("rubbish")), HasSubstr("does not follow the protocol"));
  EXPECT_THAT(failure_of(options("floods")), HasSubstr("does not follow the protocol"));
  EXPECT_THAT(failure_of(options("too-little")), HasSubstr("less data"));
  EXPECT_THAT(failure_of(options("too-much")), HasSubstr("more data"));
  EXPECT_THAT(failure_of(options("too-few")), HasSubstr("2 items"));
  EXPECT_THAT(failure_of(options("another-batch")), HasSubstr("another batch"));
  EXPECT_THAT(failure_of(options("half")), HasSubstr("exit code 0"));
}

TEST_F(CommandPredictorTest, AProgramThatHangsIsEnded) {
  CommandOptions hangs = options("hangs");
  hangs.batch_limit_ns = 200'000'000;
  EXPECT_THAT(failure_of(hangs), HasSubstr("no answer within 0.2 s"));
  CommandOptions never = options("never-ready");
  never.start_limit_ns = 200'000'000;
  EXPECT_THAT(failure_of(never), HasSubstr("no answer within"));
}

TEST_F(CommandPredictorTest, AStopIsHeeded) {
  std::stop_source stop;
  stop.request_stop();
  CommandPredictor predictor(options("hangs"), {});
  try {
    const std::vector<std::string> inputs = {"ACD"};
    predictor.predict(inputs, stop.get_token());
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kCancelled);
  }
}

/// A restart does not help.
TEST_F(CommandPredictorTest, AProgramThatIsNotThereOrCannotBeReadyIsBadInput) {
  CommandOptions none;
  none.command = {"no-such-program-here"};
  for (const CommandOptions& of_no_use : {none, options("leaves")}) {
    try {
      CommandPredictor predictor(of_no_use, {});
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInput);
    }
  }
}

}  // namespace
}  // namespace unidle::cache
