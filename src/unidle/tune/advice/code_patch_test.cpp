#include "unidle/tune/advice/code_patch.h"

#include <gmock/gmock.h>

#include "unidle/base/files.h"

namespace unidle::tune {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

TEST(CodePatch, LeavesALineOfSeveralNumbersAlone) {
  const TemporaryFolder folder;
  write_file_atomic(folder.path() / "train.py", "count = 1000000 if big else 100");
  EXPECT_EQ(code_patch({{"batch.accumulation", "train.py:1", "", "2", ""}}, folder.path()), "");
}

TEST(CodePatch, ShowsWhatAPersonWouldChange) {
  const TemporaryFolder folder;
  write_file_atomic(folder.path() / "train.py",
                    "import torch\n\nloader = DataLoader(data, 4)\nopt = torch.optim.AdamW(net.parameters())\n");
  const std::vector<CodeChange> changes = {{"loader.workers", "train.py:3", "", "2", "train.py:3"},
                                           {"optimizer.fused", "", "", "True", ""},
                                           {"precision.amp", "", "", "bf16", ""}};
  EXPECT_EQ(code_patch(changes, folder.path()),
            "--- train.py\n+++ train.py\n@@ -1,4 +1,4 @@\n import torch\n \n-loader = DataLoader(data, 4)\n"
            "-opt = torch.optim.AdamW(net.parameters())\n+loader = DataLoader(data, 4, num_workers=2)\n"
            "+opt = torch.optim.AdamW(net.parameters(), fused=True)\n");
}

TEST(CodePatch, ALoaderOfThePackageHasItsOwnArguments) {
  const TemporaryFolder folder;
  write_file_atomic(folder.path() / "train.py", "loader = data.Loader(source, 4, workers=1)\n");
  const auto changes = code_changes(
      {knobs::change_of("loader.workers", 1, 3, ""), knobs::change_of("loader.persistent_workers", false, true, "")},
      {{"loader", "train.py:1"}, {"made_with", "unidle"}}, "cpu");
  ASSERT_EQ(changes.size(), 1u) << "its threads always persist";
  EXPECT_EQ(changes[0].code, "unidle.data.Loader(..., workers=3)");
  EXPECT_THAT(code_patch(changes, folder.path()), HasSubstr("+loader = data.Loader(source, 4, workers=3)\n"));
}

TEST(CodePatch, ChangesTheBatchAndItsCountOrNeither) {
  const TemporaryFolder folder;
  const auto patch = [&](const std::string& text) {
    write_file_atomic(folder.path() / "train.py", text);
    return code_patch({{"batch.accumulation", "train.py:1", "", "1", ""}, {"batch.size", "train.py:2", "", "64", ""}},
                      folder.path());
  };
  EXPECT_THAT(patch("COUNT_4 = 4  # 4 of them\nloader = DataLoader(data, batch_size=SIZE)\n"),
              HasSubstr("+COUNT_4 = 1  # 4 of them\n+loader = DataLoader(data, batch_size=64)\n"));
  EXPECT_THAT(patch("count = 4\nloader = DataLoader(data, 16, True)\n"),
              HasSubstr("+count = 1\n+loader = DataLoader(data, 64, True)\n"));
  EXPECT_THAT(patch("count = 4\nloader = DataLoader(data, shuffle=True)\n"),
              HasSubstr("+loader = DataLoader(data, shuffle=True, batch_size=64)\n"));
  EXPECT_EQ(patch("size, count = 16, 4\nloader = DataLoader(data, size)\n"), "") << "which of the two";
  EXPECT_EQ(patch("count = 4\nloader = make_loader(data, 16)\n"), "");
  EXPECT_EQ(patch("count = len(x)\nloader = DataLoader(data, 16)\n"), "");
  EXPECT_EQ(patch("count = 4.0\nloader = DataLoader(data, 16)\n"), "");
}

std::string cached_patch(const std::string& text, int line) {
  const TemporaryFolder folder;
  write_file_atomic(folder.path() / "data.py", text);
  const auto changes =
      code_changes({knobs::change_of("cache.features", "off", "memory", "")},
                   {{"function", "data.py:" + std::to_string(line)}, {"dataset", "train.py:9"}}, "cpu");
  return code_patch(changes, folder.path());
}

TEST(CodePatch, AFunctionWhoseResultsCanBeKeptIsDecorated) {
  EXPECT_EQ(
      cached_patch("from __future__ import annotations\n\nimport numpy\n\n\ndef decode(path):\n    return 1\n", 6),
      "--- data.py\n+++ data.py\n@@ -1,7 +1,9 @@\n from __future__ import annotations\n \n+import unidle\n"
      " import numpy\n \n \n+@unidle.cached(\".unidle/cache\", version=1)  # another version when its results "
      "change\n def decode(path):\n     return 1\n");
  const std::string decorated = cached_patch("import unidle\r\n@timed\r\ndef decode(path):\r\n    return 1\r\n", 2);
  EXPECT_THAT(decorated, HasSubstr(" @timed\r\n+@unidle.cached(\".unidle/cache\", version=1)  # another version when "
                                   "its results change\r\n def decode"))
      << "the function itself is cached, not what decorates it";
  EXPECT_THAT(decorated, ::testing::Not(HasSubstr("+import")));
}

TEST(CodePatch, NoFunctionIsDecoratedThatIsNotThereOrIsAlready) {
  EXPECT_EQ(cached_patch("import numpy\nx = 1\n", 2), "");
  EXPECT_EQ(cached_patch("import numpy\ndecode = lambda path: 1\n", 2), "");
  EXPECT_EQ(cached_patch("import unidle\n@unidle.cached('a', 1)\ndef decode(path):\n    return 1\n", 2), "");
  EXPECT_EQ(cached_patch("def decode(path):\n    import numpy\n    return 1\n", 1), "") << "where would the import be";
  EXPECT_EQ(cached_patch("import numpy\n", 99), "");
}

TEST(CodePatch, ALineInADocstringIsNoCode) {
  const TemporaryFolder folder;
  write_file_atomic(folder.path() / "train.py", "\"\"\"Usage:\nloader = DataLoader(data)\n\"\"\"\nx = 1\n");
  EXPECT_EQ(code_patch({{"loader.workers", "train.py:2", "", "2", ""}}, folder.path()), "");
  write_file_atomic(folder.path() / "train.py", "loader = DataLoader(data\n");
  EXPECT_EQ(code_patch({{"loader.workers", "train.py:1", "", "2", ""}}, folder.path()), "") << "no Python";
}

TEST(CodePatch, NothingForWhatIsElsewhereOrNotAlone) {
  const TemporaryFolder folder;
  write_file_atomic(folder.path() / "train.py", "a = Adam(x)\nb = Adam(y)\nloader = make_loader(data)\n");
  EXPECT_EQ(code_patch({{"optimizer.fused", "", "", "True", "train.py:1"}}, folder.path()), "") << "two optimisers";
  EXPECT_THAT(code_patch({{"optimizer.fused", "train.py:2", "", "True", ""}}, folder.path()),
              HasSubstr("+b = Adam(y, fused=True)\n"))
      << "its line is known";
  EXPECT_EQ(code_patch({{"loader.workers", "train.py:3", "", "2", ""}}, folder.path()), "") << "made elsewhere";
  EXPECT_EQ(code_patch({{"loader.workers", "/usr/lib/x.py:3", "", "2", ""}}, folder.path()), "");
  EXPECT_EQ(code_patch({{"loader.workers", "train.py:99", "", "2", ""}}, folder.path()), "");
  EXPECT_EQ(code_patch({{"loader.workers", "nowhere.py:1", "", "2", ""}}, folder.path()), "");
}

TEST(PatchOptions, FollowsLinksOfFilesButNotOutOfTheFolder) {
  const TemporaryFolder root;
  const fs::path folder = root.path() / "program";
  make_folders(folder / "code");
  make_folders(root.path() / "library");
  write_file_atomic(folder / "code/a.py", "a\n");
  fs::create_symlink("code/a.py", folder / "a.py");
  fs::create_symlink(root.path() / "library", folder / "library");
  EXPECT_EQ(patch_options("--- code/a.py\n+++ code/a.py\n", folder), "-p0");
  EXPECT_EQ(patch_options("--- a.py\n+++ a.py\n", folder), "--follow-symlinks -p0");
  EXPECT_EQ(patch_options("--- library/a.py\n+++ library/a.py\n", folder), "");
}

}  // namespace
}  // namespace unidle::tune
