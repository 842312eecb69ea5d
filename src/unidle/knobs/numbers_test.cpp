#include <gtest/gtest.h>

#include "unidle/knobs/recognize.h"

namespace unidle::knobs {
namespace {

std::string workers(const std::string& value, const std::string& name = "c.yaml") {
  const std::string text = name.ends_with(".yaml") ? "num_workers: " + value : "num_workers = " + value;
  const Recognition recognition = recognize(ConfigFile::from_text(text + "\n", name));
  return recognition.knobs.empty() ? "none" : recognition.knobs[0].means.value_or("?").to_text();
}

TEST(Literal, NumbersAsPyYamlReadsThem) {
  EXPECT_EQ(workers("010"), "8");
  EXPECT_EQ(workers("1_024"), "1024");
  EXPECT_EQ(workers("0x10"), "16");
  EXPECT_EQ(workers("0b11"), "3");
  EXPECT_EQ(workers("+8"), "8");
  EXPECT_EQ(workers("1:30"), "90");
  EXPECT_EQ(workers("0"), "0");
  EXPECT_EQ(workers("\"010\""), "10") << "a text, which int() reads";
  EXPECT_EQ(workers("099"), "99") << "a text as well";
  EXPECT_EQ(workers("1:90"), "none");
}

TEST(Literal, NumbersOfOtherFormats) {
  EXPECT_EQ(workers("1_024", "c.toml"), "1024");
  EXPECT_EQ(workers("0x10", "c.toml"), "16");
  EXPECT_EQ(workers("1_024", "c.py"), "1024");
  EXPECT_EQ(workers("0o10", "c.py"), "8");
  EXPECT_EQ(workers("0x10", "c.py"), "16");
}

TEST(Literal, UnderscoresInFractions) {
  const Recognition recognition = recognize(ConfigFile::from_text("lr: 0.000_5\n", "c.yaml"));
  ASSERT_EQ(recognition.knobs.size(), 1u);
  EXPECT_EQ(recognition.knobs[0].means, 0.0005);
}

}  // namespace
}  // namespace unidle::knobs
