#include "unidle/diagnose/in_program/padding_line.h"

#include <gtest/gtest.h>

#include "unidle/base/files.h"

namespace unidle::diagnose {
namespace {

std::optional<std::string> place_in(const std::string& script) {
  const TemporaryFolder folder;
  write_file_atomic(folder.path() / "train.py", script);
  Signals signals;
  signals.folder = folder.path();
  signals.command = {"python", "train.py"};
  Sources sources(folder.path());
  return line_that_pads(signals, sources);
}

TEST(PaddingLine, IsTheCallOfTheTokenizer) {
  EXPECT_EQ(place_in("import x\ntok(texts,\n    padding = 'max_length')\n"), "train.py:3");
  EXPECT_EQ(place_in("tok(texts, pad_to_max_length=True)"), "train.py:1");
  EXPECT_EQ(place_in("tok(texts, padding=\"max_length\", max_length=128)\n"), "train.py:1");
}

TEST(PaddingLine, NothingWhereItIsNotKnown) {
  EXPECT_FALSE(place_in("tok(texts, padding=True)\n# padding='max_length'\n"));
  EXPECT_FALSE(place_in("a(padding='max_length')\nb(padding='max_length')\n"));
  EXPECT_FALSE(place_in(""));
}

}  // namespace
}  // namespace unidle::diagnose
