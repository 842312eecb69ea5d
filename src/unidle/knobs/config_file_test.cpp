#include "unidle/knobs/config_file.h"

#include <gmock/gmock.h>

#include <cstdlib>

#include "unidle/base/error.h"
#include "unidle/base/files.h"

namespace unidle::knobs {
namespace {

using ::testing::HasSubstr;

std::string edited_yaml(std::string text, std::string_view path, std::string_view value) {
  ConfigFile file = ConfigFile::from_text(std::move(text), "test.yaml");
  file.set(path, value);
  return file.text();
}

ErrorCode error_of_yaml(std::string text, std::string_view path, std::string_view value) {
  try {
    edited_yaml(std::move(text), path, value);
  } catch (const Error& error) {
    return error.code();
  }
  return ErrorCode::kOutOfMemory;  // no error: a code that none of them has
}

constexpr const char* kBlock =
    "# a comment\n"
    "loader:\n"
    "  workers: 0   # none\n"
    "  # prefetch_factor: 2\n"
    "\n"
    "optimizer:\n"
    "  lr: 3e-4\n"
    "  name: \"adamw\"\n"
    "labels:\n"
    "  - name: a\n"
    "    lr: 1\n"
    "  - name: b\n"
    "    lr: 2\n";

TEST(ConfigFile, ReadsPathsValuesAndLines) {
  const ConfigFile file = ConfigFile::from_text(kBlock, "test.yaml");
  ASSERT_EQ(file.scalars().size(), 7u);
  EXPECT_EQ(file.find("loader.workers")->value, "0");
  EXPECT_EQ(file.find("loader.workers")->line, 3);
  EXPECT_EQ(file.find("optimizer.name")->value, "adamw");
  EXPECT_TRUE(file.find("optimizer.name")->quoted);
  EXPECT_EQ(file.find("labels[1].lr")->value, "2");
  EXPECT_EQ(file.find("labels[1].lr")->line, 13);
  EXPECT_EQ(file.find("nothing"), nullptr);
  const Scalar* lr = file.find("optimizer.lr");
  EXPECT_EQ(file.text().substr(lr->begin, lr->end - lr->begin), "3e-4");
}

TEST(ConfigFile, FilesOfOtherKindsAreRefusedByName) {
  for (const char* name : {"train.ini", "job.sh", "job.sbatch", "train.ipynb"}) {
    EXPECT_THROW(ConfigFile::from_text("batch_size\n", name), Error) << name;
  }
}

TEST(ConfigFile, ChangesOnlyTheValue) {
  std::string expected = kBlock;
  expected.replace(expected.find("0   # none"), 1, "4");
  EXPECT_EQ(edited_yaml(kBlock, "loader.workers", "4"), expected);
  EXPECT_THAT(edited_yaml(kBlock, "optimizer.name", "sgd"), HasSubstr("  name: \"sgd\"\n"));
  EXPECT_THAT(edited_yaml(kBlock, "labels[0].lr", "7"), HasSubstr("  - name: a\n    lr: 7\n  - name: b"));
}

TEST(ConfigFile, KeepsQuotingAndEscapes) {
  EXPECT_EQ(edited_yaml("a: 'x'  # c\n", "a", "it's"), "a: 'it''s'  # c\n");
  EXPECT_EQ(edited_yaml("a: \"x\"\n", "a", "say \"so\"\\"), "a: \"say \\\"so\\\"\\\\\"\n");
  EXPECT_EQ(edited_yaml("a: x\n", "a", "b: c"), "a: \"b: c\"\n");
  EXPECT_EQ(edited_yaml("a: x\n", "a", "# no comment"), "a: \"# no comment\"\n");
  EXPECT_EQ(edited_yaml("a: x\n", "a", ""), "a: \"\"\n");
}

TEST(ConfigFile, KeepsWindowsLineEndsAndByteOrderMark) {
  EXPECT_EQ(edited_yaml("a:\r\n  b: 1 # x\r\nc: 2\r\n", "a.b", "true"), "a:\r\n  b: true # x\r\nc: 2\r\n");
  EXPECT_EQ(edited_yaml("a:\r\n  b: 1 # x\r\nc: 2\r\n", "a.d", "3"), "a:\r\n  b: 1 # x\r\n  d: 3\r\nc: 2\r\n");
  EXPECT_EQ(edited_yaml("\xef\xbb\xbf"
                        "a: 1\nb: 2\n",
                        "a", "15"),
            "\xef\xbb\xbf"
            "a: 15\nb: 2\n");
  EXPECT_EQ(edited_yaml("\xef\xbb\xbf# ü\na: 1\n", "c.d", "2"), "\xef\xbb\xbf# ü\na: 1\nc:\n  d: 2\n");
}

TEST(ConfigFile, EditsAfterTextThatIsNotAscii) {
  EXPECT_EQ(edited_yaml("# 配置\nname: \"großes 模型\" # ü\nn: 1 # ß\n", "n", "2"),
            "# 配置\nname: \"großes 模型\" # ü\nn: 2 # ß\n");
}

TEST(ConfigFile, EditsFlowMappings) {
  EXPECT_EQ(edited_yaml("loader: {workers: 0, pin: \"a, b\"} # c\n", "loader.workers", "2"),
            "loader: {workers: 2, pin: \"a, b\"} # c\n");
  EXPECT_EQ(edited_yaml("loader: {workers: 0}\n", "loader.prefetch_factor", "4"),
            "loader: {workers: 0, prefetch_factor: 4}\n");
  EXPECT_EQ(edited_yaml("loader: {}\n", "loader.workers", "4"), "loader: {workers: 4}\n");
  EXPECT_EQ(edited_yaml("loader: {a: 1, b: [1, 2], }\n", "loader.c", "4"), "loader: {a: 1, b: [1, 2], c: 4 }\n");
  EXPECT_EQ(edited_yaml("loader: {a: it's, b: {c: 1}}\nz: 1\n", "loader.b.d", "4"),
            "loader: {a: it's, b: {c: 1, d: 4}}\nz: 1\n");
  EXPECT_EQ(edited_yaml("a: {x: 1}\nb: {y: 2}\nseed: 1\n", "loader.workers", "2"),
            "a: {x: 1}\nb: {y: 2}\nseed: 1\nloader: {workers: 2}\n");
}

TEST(ConfigFile, EditsFlowMappingsOverLines) {
  EXPECT_EQ(edited_yaml("a: {\n  b: 1,\n  c: 2  # last\n}\n", "a.d", "3"),
            "a: {\n  b: 1,\n  c: 2,  # last\n  d: 3\n}\n");
  EXPECT_EQ(edited_yaml("a: {\n  b: 1,\n}\n", "a.d", "3"), "a: {\n  b: 1,\n  d: 3,\n}\n");
}

TEST(ConfigFile, WritesJsonAsJson) {
  EXPECT_EQ(edited_yaml("{\n  \"a\": {\n    \"b\": 1\n  }\n}\n", "a.c", "bf16"),
            "{\n  \"a\": {\n    \"b\": 1,\n    \"c\": \"bf16\"\n  }\n}\n");
  EXPECT_EQ(edited_yaml("{\"a\": 1}\n", "b.c", "true"), "{\"a\": 1, \"b\": {\"c\": true}}\n");
}

TEST(ConfigFile, InsertsWhereAPersonWould) {
  EXPECT_THAT(edited_yaml(kBlock, "loader.prefetch_factor", "4"),
              HasSubstr("  workers: 0   # none\n  prefetch_factor: 4\n  # prefetch_factor: 2\n\noptimizer:"));
  EXPECT_THAT(edited_yaml(kBlock, "labels[0].decay", "0"), HasSubstr("    lr: 1\n    decay: 0\n  - name: b"));
  EXPECT_EQ(edited_yaml(kBlock, "cache.features", "true"), std::string(kBlock) + "cache:\n  features: true\n");
  EXPECT_EQ(edited_yaml("a:\n    b:\n        c: 1\nd: 2", "x.y.z", "3"),
            "a:\n    b:\n        c: 1\nd: 2\nx:\n    y:\n        z: 3");
  EXPECT_EQ(edited_yaml("a:\n  text: |\n    # not a comment\n    x\n\nb: 1\n", "a.c", "1"),
            "a:\n  text: |\n    # not a comment\n    x\n  c: 1\n\nb: 1\n");
}

TEST(ConfigFile, InsertsIntoEmptyPlaces) {
  EXPECT_EQ(edited_yaml("", "a.b", "1"), "a:\n  b: 1\n");
  EXPECT_EQ(edited_yaml("# only words\n", "a", "1"), "# only words\na: 1\n");
  EXPECT_EQ(edited_yaml("loader:   # none yet\nb: 1\n", "loader.workers", "2"),
            "loader:   # none yet\n  workers: 2\nb: 1\n");
  EXPECT_EQ(edited_yaml("loader: ~\nb: 1\n", "loader.workers", "2"), "loader: {workers: 2}\nb: 1\n");
  EXPECT_EQ(edited_yaml("model: # path\nb: 1\n", "model", "x.pt"), "model: x.pt # path\nb: 1\n");
  EXPECT_EQ(edited_yaml("a:\nnull: 2\n", "a", "1"), "a: 1\nnull: 2\n");
}

TEST(ConfigFile, FollowsAliasesToTheAnchor) {
  const char* text = "base: &b {lr: 1, n: 2}\none: *b\ntwo: &t 5\nthree: *t\n";
  const ConfigFile file = ConfigFile::from_text(text, "test.yaml");
  EXPECT_EQ(file.find("one.lr")->value, "1");
  EXPECT_EQ(edited_yaml(text, "one.lr", "3"), "base: &b {lr: 3, n: 2}\none: *b\ntwo: &t 5\nthree: *t\n");
  EXPECT_EQ(edited_yaml(text, "three", "6"), "base: &b {lr: 1, n: 2}\none: *b\ntwo: &t 6\nthree: *t\n");
  ConfigFile changed = ConfigFile::from_text(text, "c.yaml");
  changed.set_alone("three", "6");
  EXPECT_EQ(changed.text(), "base: &b {lr: 1, n: 2}\none: *b\ntwo: &t 5\nthree: 6\n");
  EXPECT_THROW(changed.set_alone("base.lr", "3"), Error) << "one.lr is that value";
  changed.set_alone("two", "7");
  EXPECT_EQ(changed.text(), "base: &b {lr: 1, n: 2}\none: *b\ntwo: &t 7\nthree: 6\n") << "nobody reads it any more";
  EXPECT_EQ(error_of_yaml(text, "one.new", "1"), ErrorCode::kInput);
}

TEST(ConfigFile, KeepsTags) { EXPECT_EQ(edited_yaml("a: !!str 12\nb: 1\n", "a", "13"), "a: !!str 13\nb: 1\n"); }

TEST(ConfigFile, RefusesWhatItCannotEdit) {
  EXPECT_EQ(error_of_yaml("a: |\n  text\nb: 1\n", "a", "x"), ErrorCode::kInput);
  EXPECT_EQ(error_of_yaml("a: one\n  two\nb: 1\n", "a", "x"), ErrorCode::kInput);
  EXPECT_EQ(error_of_yaml("a: 1\na: 2\n", "a", "x"), ErrorCode::kInput);
  EXPECT_EQ(error_of_yaml("a: 1\n", "a.b", "x"), ErrorCode::kInput);
  EXPECT_EQ(error_of_yaml("- 1\n- 2\n", "a.b", "x"), ErrorCode::kInput);
  EXPECT_EQ(error_of_yaml("a: 1\n", "a..b", "x"), ErrorCode::kInput);
}

TEST(ConfigFile, NamesFileAndLineOfASyntaxError) {
  try {
    ConfigFile::from_text("a: 1\nb: [1, 2\nc: 3\n", "bad.yaml");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInput);
    EXPECT_THAT(error.subject(), HasSubstr("bad.yaml:"));
  }
  EXPECT_THROW(ConfigFile::from_text("\xff\xfe"
                                     "a",
                                     "bad.yaml"),
               Error);
  EXPECT_THROW(ConfigFile::load("/nowhere/at/all.yaml"), Error);
}

TEST(ConfigFile, StopsAtAStrayBracket) {
  for (const char* text : {"a: 1\n}\n", "}", "{a: 1}}\n", "# c\n  \"x\": {\"a\": 1},\n}\n", "]"}) {
    EXPECT_THROW(ConfigFile::from_text(text, "bad.yaml"), Error) << text;
  }
  EXPECT_EQ(ConfigFile::from_text("---\n---\na: 1\n---\n", "empty.yaml").scalars().size(), 3u);
}

TEST(ConfigFile, StopsAtAliasesThatExplode) {
  std::string text = "a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n";
  for (int i = 1; i < 9; ++i) {
    const std::string previous = "*a" + std::to_string(i - 1);
    text += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [";
    for (int j = 0; j < 10; ++j) {
      text += previous + ", ";
    }
    text += "]\n";
  }
  EXPECT_THROW(ConfigFile::from_text(text, "bomb.yaml"), Error);
}

/// Another value of the same kind, so that only the value's own bytes must change.
std::string other_value(const Scalar& scalar) {
  if (scalar.quoted) {
    return "changed";
  }
  if (scalar.value == "true" || scalar.value == "false") {
    return scalar.value == "true" ? "false" : "true";
  }
  return scalar.value == "7" ? "8" : "7";
}

/// For every value of the file, changing it and changing it back restores the bytes.
void check_round_trips(const std::string& text, const std::string& name) {
  const ConfigFile original = ConfigFile::from_text(text, name);
  std::size_t edits = 0;
  // Every edit parses the whole file: for large files, an evenly spaced sample is enough.
  const std::size_t stride = 1 + original.scalars().size() / 100;
  for (std::size_t i = 0; i < original.scalars().size(); i += stride) {
    const Scalar& scalar = original.scalars()[i];
    if (!scalar.editable || scalar.value.empty()) {
      continue;
    }
    const std::string source = text.substr(scalar.begin, scalar.end - scalar.begin);
    const std::string other = other_value(scalar);
    ConfigFile file = original;
    try {
      file.set(scalar.path, other);
    } catch (const Error& error) {
      ASSERT_EQ(error.code(), ErrorCode::kInput) << name << " " << scalar.path << ": " << error.what();
      continue;
    }
    // Every byte before and after the value is unchanged.
    ASSERT_EQ(file.text().size(), text.size() - source.size() + other.size() + (scalar.quoted ? 2 : 0))
        << name << " " << scalar.path;
    ASSERT_EQ(file.text().substr(0, scalar.begin), text.substr(0, scalar.begin));
    ASSERT_TRUE(file.text().ends_with(text.substr(scalar.end))) << name << " " << scalar.path;
    // The original spelling (escapes, plain text with brackets) need not be restored.
    file.set(scalar.path, scalar.value);
    const bool own_spelling = source != scalar.value && source.find('\\') != std::string::npos;
    const bool quoted_now = !scalar.quoted && file.text().size() != text.size();
    if (!own_spelling && !quoted_now) {
      ASSERT_EQ(file.text(), text) << name << " " << scalar.path;
    }
    ++edits;
  }
  EXPECT_GT(edits, 0u) << name;
}

TEST(ConfigFile, EditAndEditBackIsTheSameFile) {
  check_round_trips(kBlock, "block");
  check_round_trips("{\"a\": {\"b\": [1, 2.5, \"x\"]}, \"c\": null}", "json");
  check_round_trips("a: &x 1\r\nb: *x\r\nc: {d: 'q', e: [~, 1]}\r\n# end", "crlf");
  check_round_trips("--- # head\na: 1\n...\n---\nb: 2\n", "documents");
  check_round_trips("d: &d {x: 1}\ne:\n  <<: *d\n  y: 2\nf: [a: 1, b: 2]\n", "merge");
}

TEST(ConfigFile, RealConfigurationsKeepTheirBytes) {
  const char* shared = std::getenv("UNIDLE_SHARED");
  if (shared == nullptr) {
    GTEST_SKIP() << "UNIDLE_SHARED is not set";
  }
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(shared) / "real/configs")) {
    const std::string extension = entry.path().extension().string();
    if (extension != ".md") {
      check_round_trips(read_file(entry.path()), entry.path().filename().string());
      ++files;
    }
  }
  EXPECT_EQ(files, 18);
}

TEST(ConfigFile, RealConfigurationsTakeNewKeys) {
  const char* shared = std::getenv("UNIDLE_SHARED");
  if (shared == nullptr) {
    GTEST_SKIP() << "UNIDLE_SHARED is not set";
  }
  for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(shared) / "real/configs")) {
    const std::string extension = entry.path().extension().string();
    if (extension == ".md") {
      continue;
    }
    ConfigFile file = ConfigFile::load(entry.path());
    const std::size_t stride = 1 + file.scalars().size() / 50;
    const std::vector<Scalar> scalars = file.scalars();
    for (std::size_t i = 0; i < scalars.size(); i += stride) {
      const Scalar& scalar = scalars[i];
      const std::size_t dot = scalar.path.rfind('.');
      const std::string parent = dot == std::string::npos ? "" : scalar.path.substr(0, dot + 1);
      if (file.find(parent + "unidle_new") != nullptr) {
        continue;
      }
      try {
        file.set(parent + "unidle_new", "7");
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::kInput) << entry.path() << " " << scalar.path << ": " << error.what();
      }
    }
    file.set("unidle_group.one", "1");
    EXPECT_EQ(file.find("unidle_group.one")->value, "1") << entry.path();
  }
}

}  // namespace
}  // namespace unidle::knobs
