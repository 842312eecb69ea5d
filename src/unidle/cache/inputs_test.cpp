#include "unidle/cache/inputs.h"

#include <gmock/gmock.h>

namespace unidle::cache {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Inputs, AreLinesOrSequences) {
  EXPECT_THAT(inputs_of("ACD\n\n  EFG \r\nACD\nHIK"), ElementsAre("ACD", "EFG", "HIK"));
  EXPECT_THAT(inputs_of("\n>one\nACD\nEFG\n\n>empty\n>two\r\nHIK\r\n>again\nACDEFG\n"), ElementsAre("ACDEFG", "HIK"));
  EXPECT_THAT(inputs_of("ACD\n>x\n"), ElementsAre("ACD", ">x"));
  EXPECT_THAT(inputs_of(""), IsEmpty());
  EXPECT_THAT(inputs_of(">\n>\n"), IsEmpty());
}

}  // namespace
}  // namespace unidle::cache
