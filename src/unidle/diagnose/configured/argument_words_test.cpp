#include "unidle/diagnose/configured/argument_words.h"

#include <gmock/gmock.h>

namespace unidle::diagnose {
namespace {

using ::testing::ElementsAre;

TEST(ArgumentWords, ShortAndAbbreviatedOptionsAreWrittenOut) {
  const std::string scripts = "p.add_argument('-b', '--batch-size')\np.add_argument('--lr')\n";
  EXPECT_THAT(with_long_options({"python", "train.py", "-b", "16", "--lr", "1"}, scripts),
              ElementsAre("python", "train.py", "--batch-size", "16", "--lr", "1"));
  EXPECT_THAT(with_long_options({"python", "train.py", "-b16", "--batch=8"}, scripts),
              ElementsAre("python", "train.py", "--batch-size=16", "--batch-size=8"));
  EXPECT_THAT(with_long_options({"python", "-b", "train.py", "-x"}, scripts),
              ElementsAre("python", "-b", "train.py", "-x"))
      << "python's own, and one that nobody has";
  EXPECT_THAT(with_long_options({"python", "train.py", "-b", "1"}, scripts + "q.add_argument('-b', '--beta')\n"),
              ElementsAre("python", "train.py", "-b", "1"))
      << "two parsers have it";
}

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
