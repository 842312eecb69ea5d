#include "unidle/base/error.h"

#include <gtest/gtest.h>

#include <cerrno>

namespace unidle {
namespace {

TEST(Error, SaysWhatWhereAndWhatToDo) {
  const Error error(ErrorCode::kInput, "a.yaml:3: batch.size", "expected a number, found 'many'",
                    "write for example 8");
  EXPECT_STREQ(error.what(), "a.yaml:3: batch.size: expected a number, found 'many' (write for example 8)");
  EXPECT_EQ(error.code(), ErrorCode::kInput);
}

TEST(Error, IsOneLineWhateverItQuotes) {
  const Error error(ErrorCode::kInput, "a.toml:4", "expected 'true', saw 't\n'", "a key such as a\r\nb");
  EXPECT_STREQ(error.what(), "a.toml:4: expected 'true', saw 't\\n' (a key such as a\\r\\nb)");
}

TEST(Error, ExitCodesTellUsageFromMissingFromFailure) {
  EXPECT_EQ(Error(ErrorCode::kUsage, "", "x").exit_code(), 2);
  EXPECT_EQ(Error(ErrorCode::kInput, "", "x").exit_code(), 2);
  EXPECT_EQ(Error(ErrorCode::kMissing, "", "x").exit_code(), 3);
  EXPECT_EQ(Error(ErrorCode::kIo, "", "x").exit_code(), 2);
}

TEST(Error, SystemErrorsCarryTheReason) {
  EXPECT_STREQ(system_error(ErrorCode::kIo, "/full", "cannot be written", ENOSPC).what(),
               "/full: cannot be written: No space left on device");
}

}  // namespace
}  // namespace unidle
