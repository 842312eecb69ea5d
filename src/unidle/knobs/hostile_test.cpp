// Malicious configurations: deep, endless, large, or not files at all.
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <ctime>
#include <fstream>
#include <functional>

#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/knobs/apply.h"
#include "unidle/knobs/config_file.h"
#include "unidle/knobs/recognize.h"

namespace unidle::knobs {
namespace {

std::string repeated(std::string_view part, std::size_t times) {
  std::string text;
  for (std::size_t i = 0; i < times; ++i) {
    text += part;
  }
  return text;
}

/// The error message for a refused text; "read" if it is accepted.
std::string said(const std::string& text, const std::string& name) {
  try {
    recognize(ConfigFile::from_text(text, name));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInput);
    return error.what();
  }
  return "read";
}

TEST(HostileConfig, KeysOfManyPartsAreRefused) {
  const std::string deep = "a" + repeated(".a", 50'000);
  EXPECT_THAT(said(deep + " = 1\n", "x.toml"), ::testing::StartsWith("x.toml:1: is nested deeper"));
  EXPECT_THAT(said("b = 1\n[" + deep + "]\nc = 1\n", "x.toml"), ::testing::StartsWith("x.toml:2: is nested deeper"));
  EXPECT_THAT(said("[[" + deep + "]]\n", "x.toml"), ::testing::HasSubstr("is nested deeper"));
  EXPECT_THAT(said(repeated("\"a\" . ", 50'000) + "b = 1\n", "x.toml"), ::testing::HasSubstr("is nested deeper"));
  const std::string inner = "a" + repeated(".a", 150);
  EXPECT_THAT(said("a = " + repeated("{" + inner + " = ", 200) + "1" + repeated("}", 200), "x.toml"),
              ::testing::HasSubstr("is nested deeper"))
      << "the parts of several keys add up";
}

TEST(HostileConfig, DotsElsewhereNestNothing) {
  const std::string dots = repeated(".", 1000);
  EXPECT_EQ(
      said("a = \"" + dots + "\"\nb = '" + dots + "'\nc = \"\"\"\n" + dots + "\n\"\"\" # " + dots + "\n", "x.toml"),
      "read");
  EXPECT_EQ(said("a = [" + repeated("1.5, ", 1000) + "]\n" + repeated("# 1.2.3\n", 1000), "x.toml"), "read");
  EXPECT_EQ(said("a" + repeated(".a", 60) + " = 1.5\n", "x.toml"), "read");
}

TEST(HostileConfig, DeepCollectionsAreRefused) {
  const auto nested = [](const char* open, const char* close) {
    return repeated(open, 50'000) + "1" + repeated(close, 50'000);
  };
  EXPECT_NE(said("a: " + nested("[", "]"), "x.yaml"), "read");
  EXPECT_NE(said("a: " + nested("{a: ", "}"), "x.yaml"), "read");
  EXPECT_NE(said(repeated("- ", 50'000) + "1", "x.yaml"), "read");
  EXPECT_NE(said(nested("[", "]"), "x.json"), "read");
  EXPECT_NE(said(nested("{\"a\": ", "}"), "x.json"), "read");
  EXPECT_NE(said("a = " + nested("[", "]"), "x.toml"), "read");
  // Python is only scanned: a value that is too deep is just another expression.
  EXPECT_EQ(said("a = " + nested("[", "]") + "\nb = 1\n", "x.py"), "read");
  EXPECT_EQ(said("a = " + nested("dict(a=", ")") + "\nb = 1\n", "x.py"), "read");
}

TEST(HostileConfig, AliasesThatUnfoldWithoutEndAreRefused) {
  std::string chain = "a0: &a0 1\n";
  std::string laughs = "a0: &a0 []\n";  // contains no values
  for (int i = 1; i < 5000; ++i) {
    chain += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [*a" + std::to_string(i - 1) + "]\n";
  }
  for (int i = 1; i < 20; ++i) {
    const std::string before = "*a" + std::to_string(i - 1);
    laughs += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + repeated(before + ", ", 9) + before + "]\n";
  }
  EXPECT_THAT(said(chain, "x.yaml"), ::testing::HasSubstr("is nested deeper"));
  EXPECT_THAT(said(laughs, "x.yaml"), ::testing::HasSubstr("unfolds to more than"));
  std::string long_paths = "a: &a [" + repeated("1, ", 1000) + "1]\n";
  for (int i = 0; i < 100; ++i) {
    long_paths += std::string(1000, 'k') + std::to_string(i) + ": *a\n";
  }
  EXPECT_THAT(said(long_paths, "x.yaml"), ::testing::HasSubstr("unfolds to more than")) << "100 MB of paths";
}

TEST(HostileConfig, WhatIsNoFileOrTooLargeIsToldOf) {
  const TemporaryFolder folder;
  const auto code = [](const std::filesystem::path& path) {
    try {
      ConfigFile::load(path);
    } catch (const Error& error) {
      return error.code();
    }
    return ErrorCode::kInternal;
  };
  ASSERT_EQ(::mkfifo((folder.path() / "pipe.yaml").c_str(), 0600), 0);
  EXPECT_EQ(code(folder.path() / "pipe.yaml"), ErrorCode::kInput);
  EXPECT_EQ(code("/dev/zero"), ErrorCode::kInput);
  std::ofstream(folder.path() / "large.yaml") << "a: 1\n";
  std::filesystem::resize_file(folder.path() / "large.yaml", std::uintmax_t{1} << 40);  // sparse: uses no disk space
  EXPECT_EQ(code(folder.path() / "large.yaml"), ErrorCode::kInput);
}

/// CPU time of this thread in seconds, independent of the machine's load.
double cpu_s(const std::function<void()>& work) {
  timespec before{};
  timespec after{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &before);
  work();
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &after);
  return static_cast<double>(after.tv_sec - before.tv_sec) + 1e-9 * static_cast<double>(after.tv_nsec - before.tv_nsec);
}

double cost_of_settings(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) {
    const std::string stage = "stage" + std::to_string(i);
    text += stage + ":\n  num_workers: 0\n  lr: ${base}\n  loader_workers: ${" + stage + ".num_workers}\n";
  }
  return cpu_s([&] {
    ConfigFile file = ConfigFile::from_text(text, "x.yaml");
    EXPECT_GE(set_knob(file, "loader.workers", 4).size(), static_cast<std::size_t>(count));
  });
}

TEST(HostileConfig, ManySettingsCostWhatEachCosts) {
  double least = 1e9;  // minimum of a few runs, to exclude effects of caches and the allocator
  for (int i = 0; i < 3; ++i) {
    const double few = cost_of_settings(500);
    least = std::min(least, cost_of_settings(4000) / few);
  }
  EXPECT_LT(least, 24) << "8 is linear, 64 would be quadratic";
}

TEST(HostileConfig, ReferencesThatHoldThemselvesEnd) {
  for (const char* text : {"a:\n  num_workers: 0\n  b: ${a}\n", "a:\n  num_workers: 0\n  b: ${a}\n  c: ${a}\n",
                           "num_workers: ${num_workers}\n", "x: ${y}\ny: ${x}\nnum_workers: ${x}\n"}) {
    ConfigFile file = ConfigFile::from_text(text, "x.yaml");
    EXPECT_THROW(set_knob(file, "loader.workers", 4), Error) << text;
    EXPECT_EQ(file.text(), text);
  }
}

TEST(HostileConfig, SharedLiteralsAreChangedOnce) {
  ConfigFile file = ConfigFile::from_text("a: &w 0\nb: *w\nc: 0\n", "x.yaml");
  file.change({{"a", "4"}, {"b", "4"}, {"c", "5"}});
  EXPECT_EQ(file.text(), "a: &w 4\nb: *w\nc: 5\n");
  EXPECT_THROW(file.change({{"c", "6"}, {"a", "7"}, {"b", "8"}}), Error);
  EXPECT_EQ(file.text(), "a: &w 4\nb: *w\nc: 5\n") << "all or none";
}

}  // namespace
}  // namespace unidle::knobs
