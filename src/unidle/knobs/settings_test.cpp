#include "unidle/knobs/settings.h"

#include <gmock/gmock.h>

#include "unidle/base/error.h"

namespace unidle::knobs {
namespace {

using ::testing::HasSubstr;

TEST(Settings, AWrongValueNamesFileLineAndKey) {
  try {
    read_settings(ConfigFile::from_text("a: 1\nprecision:\n  amp: true\n", "c.yaml"));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInput);
    EXPECT_EQ(error.subject(), "c.yaml:3: precision.amp");
    EXPECT_THAT(error.message(), HasSubstr("off, fp16, bf16"));
  }
}

}  // namespace
}  // namespace unidle::knobs
