#include "unidle/trace/recorded.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <fstream>

#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/trace/detail/events.h"
#include "unidle/trace/document.h"
#include "unidle/trace/timeline.h"

namespace unidle::trace {
namespace {

constexpr const char* kTrace =
    R"([{"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":10,"dur":5,"args":{"device":0}}])";

/// A record of two windows, one of them cut off, and the shim's notes.
class Recorded : public testing::Test {
 protected:
  void write(const std::vector<nlohmann::json>& notes) {
    record::Writer writer(folder_);
    for (const nlohmann::json& note : notes) {
      writer.add(record::Note{1, 7, note});
    }
    analyse_traces(writer, folder_);
  }
  void file(const std::string& name, const std::string& bytes) {
    make_folders(folder_);
    std::ofstream(folder_ / name) << bytes;
  }

  TemporaryFolder temporary_;
  std::filesystem::path folder_ = temporary_.path() / "run";
};

TEST_F(Recorded, FilesOfProcessesAreTakenInAndOthersLeftAlone) {
  file("trace-42.json", kTrace);
  file("trace-x.json", kTrace);
  file("notes.json", kTrace);
  write({});
  const record::Reader reader(folder_);
  const auto traces = recorded_traces(reader);
  ASSERT_EQ(traces.size(), 1U);
  EXPECT_EQ(traces[0].process, 42);
  EXPECT_EQ(traces[0].file, folder_ / "trace-42.json");
  EXPECT_EQ(traces[0].summary.file, "trace-42.json");
  EXPECT_EQ(traces[0].summary.kernel_count, 1);
  EXPECT_EQ(why_no_trace(reader), "");
}

TEST_F(Recorded, ADamagedFileIsNotedWithItsReason) {
  file("trace-42.json", std::string(kTrace).substr(0, 60));
  write({});
  const record::Reader reader(folder_);
  EXPECT_TRUE(recorded_traces(reader).empty());
  EXPECT_THAT(why_no_trace(reader), testing::HasSubstr("trace-42.json"));
}

TEST_F(Recorded, TheProgramsOwnReasonIsTold) {
  write({{{"type", "trace"}, {"status", "off"}, {"reason", "the program profiles itself"}},
         {{"type", "trace_analysis"}, {"file", 3}, {"analysis", "odd"}},
         nlohmann::json::array({1, 2})});
  const record::Reader reader(folder_);
  EXPECT_TRUE(recorded_traces(reader).empty());
  EXPECT_EQ(why_no_trace(reader), "the program profiles itself");
}

nlohmann::json analysis_named(const std::string& name, const std::filesystem::path& of) {
  logs::Source source(of);
  return {{"type", "trace_analysis"}, {"file", name}, {"analysis", to_json(read_trace(source))}};
}

TEST_F(Recorded, NamesInARecordDoNotLeadOutOfIt) {
  file("trace-42.json", kTrace);
  const std::filesystem::path outside = temporary_.path() / "trace-43.json";
  std::ofstream(outside) << kTrace;
  std::vector<nlohmann::json> notes;
  for (const std::string& name : {std::string("../trace-43.json"), outside.string(), std::string("trace-43.json/../x"),
                                  std::string("."), std::string("")}) {
    notes.push_back(analysis_named(name, outside));
  }
  write(notes);
  const record::Reader reader(folder_);
  const auto traces = recorded_traces(reader);
  ASSERT_EQ(traces.size(), 1U);
  EXPECT_EQ(traces[0].file, folder_ / "trace-42.json");
}

TEST_F(Recorded, LinksAndPipesInARecordAreNotFollowed) {
  const std::filesystem::path outside = temporary_.path() / "secret.json";
  std::ofstream(outside) << kTrace;
  make_folders(folder_);
  std::filesystem::create_symlink(outside, folder_ / "trace-43.json");
  ASSERT_EQ(::mkfifo((folder_ / "trace-44.json").c_str(), 0600), 0);
  write({analysis_named("trace-43.json", outside)});
  const record::Reader reader(folder_);
  EXPECT_EQ(recorded_traces(reader).size(), 1U) << "the record's own analysis, and no second one of the link";
  const auto timeline = write_timeline(reader, {}, temporary_.path() / "out.json");
  EXPECT_THAT(timeline.left_out, testing::Contains(testing::HasSubstr("trace-43.json")));
  EXPECT_THAT(read_file(temporary_.path() / "out.json"), testing::Not(testing::HasSubstr("gemm")));
}

TEST_F(Recorded, ADeepTraceIsToldOf) {
  const std::string deep = std::string(100'000, '[') + std::string(100'000, ']');
  file("trace-42.json", R"({"traceEvents":[{"ph":"X","name":"a","ts":1,"dur":1,"args":)" + deep + "}]}");
  write({});
  EXPECT_THAT(why_no_trace(record::Reader(folder_)), testing::HasSubstr("is nested deeper"));
  logs::Source source(folder_ / "trace-42.json");
  EXPECT_THROW(detail::for_each_raw_event(source, [](nlohmann::json&) {}), Error);
}

}  // namespace
}  // namespace unidle::trace
