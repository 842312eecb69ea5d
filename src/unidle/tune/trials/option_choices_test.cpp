#include <gtest/gtest.h>

#include "unidle/knobs/reach.h"
#include "unidle/tune/trials/apply_runner.h"

namespace unidle::tune {
namespace {

using Words = std::vector<std::string>;

TEST(OptionChoices, NoOtherValueIsTried) {
  const knobs::OptionChoices choices = {{"batch_size", {"16", "32"}}, {"b", {"16", "32"}}, {"amp_dtype", {"float16"}}};
  EXPECT_EQ(knobs::why_refused({"python", "t.py", "--batch-size", "32", "-b", "16", "--x", "64"}, choices), "");
  EXPECT_EQ(knobs::why_refused({"python", "t.py", "--batch-size", "64"}, choices),
            "--batch-size accepts 16, 32; 64 is not one of them");
  EXPECT_NE(knobs::why_refused({"python", "t.py", "--batch_size=64"}, choices), "");
  EXPECT_NE(knobs::why_refused({"python", "t.py", "-b", "64"}, choices), "");
  EXPECT_EQ(knobs::why_refused({"python", "t.py", "batch_size", "64", "--batch-size"}, choices), "");
  ProgramPlan plan;
  plan.choices = choices;
  plan.omitted = {{"batch.size", {"--batch-size", "16"}}};
  const Words command = {"python", "t.py", "--amp-dtype", "float16"};
  EXPECT_EQ(why_refused(plan, command, {{"batch.size", 32}}), "");
  EXPECT_NE(why_refused(plan, command, {{"batch.size", 64}}), "");
  EXPECT_NE(why_refused(plan, {"python", "t.py", "--batch-size", "16"}, {{"batch.size", 64}}), "");
}

}  // namespace
}  // namespace unidle::tune
