#include "unidle/trace/recorded.h"

#include <gmock/gmock.h>

#include <fstream>

#include "unidle/base/files.h"

namespace unidle::trace {
namespace {

constexpr const char* kTrace =
    R"([{"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":10,"dur":5,"args":{"device":0}}])";

/// A record of two windows, one of them cut off, and of what the shim noted.
class Recorded : public testing::Test {
 protected:
  void write(const std::vector<nlohmann::json>& notes) {
    record::Writer writer(folder_);
    for (const nlohmann::json& note : notes) {
      writer.add(record::Note{1, 7, note});
    }
    take_in(writer, folder_);
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

}  // namespace
}  // namespace unidle::trace
