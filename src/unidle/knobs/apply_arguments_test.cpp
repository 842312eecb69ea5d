#include "unidle/knobs/apply_arguments.h"

#include <gmock/gmock.h>

#include <fstream>

#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/base/testing/thrown.h"
#include "unidle/knobs/same_value.h"

namespace unidle::knobs {
namespace {

ErrorCode code_of(const std::vector<std::string>& arguments, std::string* subject = nullptr) {
  return unidle::testing::code_of([&] { apply_settings(arguments); }, subject);
}

TEST(ApplyArguments, ValuesHaveTheTypeOfTheirKnob) {
  EXPECT_EQ(encode_apply(apply_settings({"loader.workers=4", "loader.pin_memory=yes", "precision.amp=bf16"})),
            R"({"loader.pin_memory":true,"loader.workers":4,"precision.amp":"bf16"})");
}

TEST(ApplyArguments, NothingAskedIsNothingSaid) { EXPECT_EQ(encode_apply(apply_settings({})), ""); }

TEST(ApplyArguments, LaterOnesWin) {
  EXPECT_EQ(encode_apply(apply_settings({"loader.workers=4", "loader.workers=2"})), R"({"loader.workers":2})");
}

TEST(ApplyArguments, AFileHoldsKnobs) {
  const TemporaryFolder folder;
  const std::string path = (folder.path() / "best.yaml").string();
  std::ofstream(path) << "loader:\n  workers: 3\nprecision:\n  tf32: true\n";
  EXPECT_EQ(encode_apply(apply_settings({path})), R"({"loader.workers":3,"precision.tf32":true})");
}

TEST(ApplyArguments, UnknownKnobsAndValuesAreNamed) {
  EXPECT_EQ(code_of({"loader.speed=4"}), ErrorCode::kUsage);
  EXPECT_EQ(code_of({"loader.workers=many"}), ErrorCode::kUsage);
  const TemporaryFolder folder;
  const std::string path = (folder.path() / "bad.yaml").string();
  std::ofstream(path) << "loader:\n  workers: 3\n  speed: 4\n";
  std::string subject;
  EXPECT_EQ(code_of({path}, &subject), ErrorCode::kUsage);
  EXPECT_THAT(subject, ::testing::HasSubstr("bad.yaml:3"));
  EXPECT_EQ(code_of({(folder.path() / "none.yaml").string()}), ErrorCode::kInput);
}

}  // namespace
}  // namespace unidle::knobs
