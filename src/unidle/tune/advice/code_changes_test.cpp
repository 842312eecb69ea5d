#include "unidle/tune/advice/code_changes.h"

#include <gmock/gmock.h>

namespace unidle::tune {
namespace {

using ::testing::HasSubstr;

TEST(CodeChanges, NameTheLineAndTheCode) {
  const std::map<std::string, std::string> places = {
      {"loader", "train.py:81"}, {"model", "train.py:90"}, {"optimizer", "model.py:12"}};
  const std::vector<knobs::Change> changes = {
      knobs::change_of("loader.workers", 0, 2, ""), knobs::change_of("loader.pin_memory", false, true, ""),
      knobs::change_of("precision.amp", "off", "bf16", ""), knobs::change_of("optimizer.fused", false, true, "")};
  const auto found = code_changes(changes, places, "cuda");
  ASSERT_EQ(found.size(), 4u);
  EXPECT_EQ(found[0].where, "train.py:81");
  EXPECT_EQ(found[0].code, "DataLoader(..., num_workers=2)");
  EXPECT_EQ(found[1].code, "DataLoader(..., pin_memory=True)");
  EXPECT_EQ(found[2].where, "train.py:90");
  EXPECT_THAT(found[2].code, HasSubstr("torch.autocast(\"cuda\", dtype=torch.bfloat16)"));
  EXPECT_EQ(found[3].where, "model.py:12");
}

}  // namespace
}  // namespace unidle::tune
