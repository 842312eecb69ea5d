#include "unidle/trace/timeline.h"

#include <gmock/gmock.h>

#include <fstream>

#include "unidle/base/clock.h"
#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/logs/source.h"
#include "unidle/trace/detail/events.h"
#include "unidle/trace/recorded.h"

namespace unidle::trace {
namespace {

using nlohmann::json;

constexpr std::int64_t kStart = 1000 * kNsPerSecond;

class TimelineTest : public testing::Test {
 protected:
  void write_record(const std::string& trace) {
    record::Writer writer(folder_);
    writer.set_meta(record::meta::kStartNs, kStart);
    writer.add(record::Span{"startup", 42, kStart, 2 * kNsPerSecond, 0});
    record::Step step;
    step.process = 42;
    step.index = 3;
    step.t_ns = kStart + 2 * kNsPerSecond;
    step.duration_ns = 10'000'001;
    step.samples = 8;
    step.input_ns = 4'000'000;
    step.forward_ns = 9'000'000;  // more than the step has left: clocks of parts are imprecise
    writer.add(step);
    writer.add_point(writer.series({"gpu.power", "W", "gpu0"}), {kStart + 1, 70.5});
    writer.add_point(writer.series({"tree.cpu", "cores", ""}), {kStart + 2, 1.5});
    writer.add_point(writer.series({"step.log", "s", "pid 42"}), {kStart + 2 * kNsPerSecond, 0.001});
    writer.add(record::Metric{"loss", kStart + 3 * kNsPerSecond, 3, 24, 0.25});
    writer.add(record::Note{kStart + 4 * kNsPerSecond, 42,
                            json{{"type", "exception"}, {"class", "KeyError"}, {"message", "\"x\"\xff"}}});
    if (!trace.empty()) {
      std::ofstream(folder_ / "trace-42.json") << trace;
      analyse_traces(writer, folder_);
    }
  }

  json export_to(const std::string& name, const std::vector<Instant>& instants = {}) {
    timeline_ = write_timeline(record::Reader(folder_), instants, temporary_.path() / name);
    logs::Source source(temporary_.path() / name);
    std::string bytes(std::size_t{1} << 20U, '\0');
    std::size_t size = 0;
    while (const std::size_t got = source.read({bytes.data() + size, bytes.size() - size})) {
      size += got;
    }
    bytes.resize(size);
    return json::parse(bytes);
  }

  static std::vector<json> named(const json& document, const std::string& name) {
    std::vector<json> found;
    for (const json& event : document["traceEvents"]) {
      if (event["name"] == name) {
        found.push_back(event);
      }
    }
    return found;
  }

  TemporaryFolder temporary_;
  std::filesystem::path folder_ = temporary_.path() / "run";
  Timeline timeline_;
};

TEST_F(TimelineTest, StepsPhasesAndParts) {
  write_record("");
  const json document = export_to("t.json");
  EXPECT_EQ(document["traceEvents"].size(), timeline_.events);
  const json startup = named(document, "startup").at(0);
  EXPECT_EQ(startup["ts"], 0);
  EXPECT_EQ(startup["dur"], 2e6);
  const json step = named(document, "step 3").at(0);
  EXPECT_EQ(step["ph"], "X");
  EXPECT_EQ(step["pid"], 42);
  EXPECT_EQ(step["ts"], 2e6);
  EXPECT_EQ(step["dur"], 10000.001);
  const json input = named(document, "input").at(0);
  const json forward = named(document, "forward").at(0);
  EXPECT_EQ(input["tid"], step["tid"]);
  EXPECT_EQ(input["ts"], 2e6);
  EXPECT_EQ(forward["ts"], 2004000);
  EXPECT_EQ(forward["dur"], 6000.001);  // ends with its step
  EXPECT_EQ(named(document, "step.log").at(0)["dur"], 1000);
}

TEST_F(TimelineTest, CountersAndInstants) {
  write_record("");
  const json document = export_to("t.json", {{kStart + 5, "sync-each-step", {{"evidence", {"one"}}}}});
  EXPECT_EQ(named(document, "gpu.power (W)").at(0)["args"]["value"], 70.5);
  EXPECT_NE(named(document, "gpu.power (W)").at(0)["pid"], named(document, "tree.cpu (cores)").at(0)["pid"]);
  EXPECT_EQ(named(document, "loss").at(0)["ph"], "C");
  const json finding = named(document, "sync-each-step").at(0);
  EXPECT_EQ(finding["ph"], "i");
  EXPECT_EQ(finding["s"], "g");
  EXPECT_EQ(finding["ts"], 0.005);
  EXPECT_EQ(named(document, "KeyError: \"x\"\xef\xbf\xbd").size(), 1U);
}

TEST_F(TimelineTest, AWindowOnTheRecordsClock) {
  const std::string mark = std::to_string(kStart + 3 * kNsPerSecond);
  write_record(
      R"({"schemaVersion":1,"traceEvents":[{"ph":"M","name":"process_name","pid":42,"args":{"name":"python"}},)"
      R"({"ph":"X","cat":"user_annotation","name":"unidle.clock.)" +
      mark +
      R"(","pid":42,"tid":42,"ts":5000.5,"dur":1},{"ph":"s","id":7,"pid":42,"tid":42,"ts":5000.75,"name":"ac2g"},)"
      R"({"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":6000.25,"dur":2,"args":{"device":0,"x":[1,{}]}}]})");
  const json document = export_to("t.json.gz");
  EXPECT_TRUE(timeline_.left_out.empty());
  const json kernel = named(document, "gemm").at(0);
  EXPECT_NEAR(kernel["ts"].get<double>(), 3e6 + 999.75, 1e-6);
  EXPECT_EQ(kernel["args"]["x"], json::parse("[1,{}]"));
  EXPECT_EQ(named(document, "ac2g").at(0)["id"], 7);
  for (const json& name : named(document, "process_name")) {
    EXPECT_NE(name["args"]["name"], "python");  // our own name stays
  }
}

TEST_F(TimelineTest, AWindowThatCannotBeMergedIsSaid) {
  write_record(R"([{"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":1,"dur":2,"args":{"device":0}}])");
  EXPECT_EQ(named(export_to("t.json"), "gemm").size(), 0U);
  ASSERT_EQ(timeline_.left_out.size(), 1U);
  EXPECT_THAT(timeline_.left_out[0], testing::StartsWith("trace-42.json: "));
}

TEST_F(TimelineTest, NothingStaysWhereItCannotBeWritten) {
  write_record("");
  const record::Reader reader(folder_);
  try {
    write_timeline(reader, {}, temporary_.path() / "no/such/folder/t.json");
    FAIL() << "nothing was noticed";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kIo);
  }
}

TEST(RawEvents, AreHandedOverOneByOneInBothForms) {
  for (const std::string bytes :
       {R"({"a":[{"traceEvents":[{"no":1}]}],"traceEvents":[{"n":1,"args":{"deep":[{}]}},{"n":2}],"z":[{}]})",
        R"([{"n":1},{"n":2}])"}) {
    logs::Source source("t.json", bytes);
    std::vector<int> seen;
    detail::for_each_raw_event(source, [&](json& event) { seen.push_back(event.at("n").get<int>()); });
    EXPECT_THAT(seen, testing::ElementsAre(1, 2)) << bytes;
  }
}

TEST(RawEvents, DamagedOnesAreRefused) {
  for (const std::string bytes : {R"({"traceEvents":[{"n":1},{"n")", R"({"a":1})", "", "[}"}) {
    logs::Source source("t.json", bytes);
    EXPECT_THROW(detail::for_each_raw_event(source, [](json&) {}), Error) << bytes;
  }
}

}  // namespace
}  // namespace unidle::trace
