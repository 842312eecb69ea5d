#include "unidle/diagnose/configured/argument_words.h"

#include <gtest/gtest.h>

namespace unidle::diagnose {
namespace {

TEST(ArgumentWords, AnArgumentHasTheNameOfItsLastPart) {
  EXPECT_EQ(argument_name("--batch-size"), "batch_size");
  EXPECT_EQ(argument_name("data.batch_size"), "batch_size");
}

TEST(ArgumentWords, AnAssignmentMakesAnotherValueOfIt) {
  EXPECT_TRUE(is_reassigned("args.batch_size //= 4\n", "batch_size"));
  EXPECT_TRUE(is_reassigned("cfg['batch_size'] = 4\n", "batch_size"));
  EXPECT_FALSE(is_reassigned("self.batch_size = batch_size\n", "batch_size"));
  EXPECT_FALSE(is_reassigned("args.batch_size = cfg['batch_size']\n", "batch_size")) << "a plain copy";
  EXPECT_FALSE(is_reassigned("if args.batch_size == 4: pass\n", "batch_size"));
}

}  // namespace
}  // namespace unidle::diagnose
