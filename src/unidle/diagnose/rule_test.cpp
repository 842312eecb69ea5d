#include "unidle/diagnose/rule.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <array>
#include <cctype>
#include <filesystem>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "unidle/base/files.h"

namespace unidle::diagnose {
namespace {

namespace fs = std::filesystem;

const fs::path kTree = UNIDLE_SOURCE_DIR;

/// Files in which a rule's id is the name of something else: a verdict, an error's code, a threshold.
const std::set<std::pair<std::string, std::string>> kNamesakes = {
    {"src/unidle/diagnose/names.cpp", "communication-bound"}, {"src/unidle/diagnose/names.cpp", "device-unused"},
    {"src/unidle/diagnose/names.cpp", "launch-bound"},        {"src/unidle/base/error.cpp", "out-of-memory"},
    {"src/unidle/diagnose/policy.h", "recompiles"},           {"src/unidle/diagnose/policy.h", "throttled"},
};

/// True when the id appears as a separate word; an id of a single word, only between quotes.
bool names(std::string_view source, const std::string& id) {
  const std::string wanted = id.find('-') == std::string::npos ? "\"" + id + "\"" : id;
  const auto in_word = [&](std::size_t at) {
    return at < source.size() && (std::isalnum(static_cast<unsigned char>(source[at])) != 0 || source[at] == '-');
  };
  for (std::size_t at = source.find(wanted); at != std::string_view::npos; at = source.find(wanted, at + 1)) {
    if ((at == 0 || !in_word(at - 1)) && !in_word(at + wanted.size())) {
      return true;
    }
  }
  return false;
}

bool is_of_the_product(const std::string& path) {
  static constexpr std::array<std::string_view, 5> kCode = {".cpp", ".h", ".py", ".js", ".css"};
  const bool code = std::ranges::any_of(kCode, [&](std::string_view ending) { return path.ends_with(ending); });
  return code && path.find("_test.") == std::string::npos && path.find("/testing/") == std::string::npos &&
         path.find("/tests/") == std::string::npos;
}

std::string own_file(const Rule& rule) {
  std::string name = rule.id;
  std::ranges::replace(name, '-', '_');
  return "src/unidle/diagnose/rules/" + name + ".cpp";
}

TEST(Rules, NoFileButItsOwnNamesARule) {
  std::size_t files = 0;
  for (const char* folder : {"src", "python", "workloads"}) {
    for (const auto& entry : fs::recursive_directory_iterator(kTree / folder)) {
      const std::string path = entry.path().lexically_relative(kTree).string();
      if (!entry.is_regular_file() || !is_of_the_product(path)) {
        continue;
      }
      ++files;
      const std::string source = read_file(entry.path());
      for (const Rule* rule : all_rules()) {
        if (names(source, rule->id) && path != own_file(*rule) && !kNamesakes.contains({path, rule->id})) {
          ADD_FAILURE() << path << " names the rule " << rule->id << ": ask the rule for a property (rule.h)";
        }
      }
    }
  }
  EXPECT_GT(files, 100U);
}

TEST(Rules, AreFoundInASourceThatNamesThem) {
  EXPECT_TRUE(names("if (id == \"loader-per-row\")", "loader-per-row"));
  EXPECT_TRUE(names("// see loader-per-row.", "loader-per-row"));
  EXPECT_FALSE(names("loader-per-rows, a-loader-per-row", "loader-per-row"));
  EXPECT_FALSE(names("the clocks are throttled", "throttled"));
  EXPECT_TRUE(names("{\"throttled\"}", "throttled"));
}

TEST(Rules, LieInAFileOfTheirName) {
  for (const Rule* rule : all_rules()) {
    EXPECT_TRUE(names(read_file(kTree / own_file(*rule)), rule->id)) << rule->id;
  }
}

TEST(Rules, SentencesTakeTheDeviceTheShareAndThePlace) {
  for (const Rule* rule : all_rules()) {
    if (!rule->sentence.empty()) {
      const std::string said = fmt::format(fmt::runtime(rule->sentence), fmt::arg("device", "GPU"),
                                           fmt::arg("share", "40 %"), fmt::arg("where", "train.py:9"));
      EXPECT_EQ(said.find("40 %") != std::string::npos, rule->sentence.find("{share}") != std::string::npos)
          << rule->id;
      EXPECT_THAT(said, ::testing::StartsWith("Your ")) << rule->id;
    }
    EXPECT_TRUE(rule->waits.empty() || (rule->waits.starts_with("for ") && rule->verdict == Verdict::kInputBound))
        << rule->id;
  }
}

TEST(Rules, EverySymptomIsShownAndExplained) {
  std::set<Symptom> shown = {Symptom::kNoUseOfWorkers};  // of some findings of a rule
  std::set<Symptom> explained;
  std::set<int> places;
  for (const Rule* rule : all_rules()) {
    if (rule->shows) {
      shown.insert(*rule->shows);
    }
    explained.insert(rule->explains.begin(), rule->explains.end());
    EXPECT_TRUE(rule->leads == 0 || places.insert(rule->leads).second) << rule->id;
    EXPECT_TRUE(!rule->shows || std::ranges::find(rule->explains, *rule->shows) == rule->explains.end()) << rule->id;
  }
  EXPECT_EQ(shown, explained);
  EXPECT_FALSE(places.empty());
}

}  // namespace
}  // namespace unidle::diagnose
