#include "unidle/base/shell.h"

#include <gtest/gtest.h>

namespace unidle {
namespace {

TEST(Shell, QuotesWhatAShellWouldChange) {
  EXPECT_EQ(shell_quoted("--lr=1e-3"), "--lr=1e-3");
  EXPECT_EQ(shell_quoted(""), "''");
  EXPECT_EQ(shell_quoted("it's $HOME"), "'it'\\''s $HOME'");
  EXPECT_EQ(shell_joined({"python", "my train.py", "--x"}), "python 'my train.py' --x");
}

}  // namespace
}  // namespace unidle
