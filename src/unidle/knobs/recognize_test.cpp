#include "unidle/knobs/recognize.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cstdlib>
#include <set>

#include "unidle/base/files.h"

namespace unidle::knobs {
namespace {

std::string tag_of(const Recognized& setting) {
  static const std::map<std::string, std::string> kTags = {
      {"batch.size", "batch"},
      {"loader.workers", "workers"},
      {"loader.pin_memory", "pin_memory"},
      {"loader.prefetch_factor", "prefetch"},
      {"loader.persistent_workers", "persistent"},
      {"precision.amp", "amp"},
      {"precision.tf32", "tf32"},
      {"compile.mode", "compile"},
      {"batch.accumulation", "accum"},
      {"optimizer.lr", "lr"},
      {"optimizer.fused", "fused"},
      {"layout.channels_last", "channels_last"},
  };
  const auto found = kTags.find(setting.knob);
  if (found == kTags.end()) {
    return {};
  }
  std::string tag = found->second;
  if (setting.meaning == Meaning::kGlobalBatch) {
    tag += ".global";
  } else if (setting.meaning == Meaning::kOption) {
    tag += ".opt";
  } else if (setting.meaning == Meaning::kFormat) {
    tag = "precision";
  }
  return tag + (setting.phase == Phase::kValidation ? ".eval" : "");
}

/// Lines "tag path source".
using Expected = std::set<std::string>;

/// The text between the next two backquotes from `at` on, which moves behind them.
std::string quoted(const std::string& text, std::size_t& at) {
  const std::size_t begin = text.find('`', at);
  const std::size_t end = begin == std::string::npos ? begin : text.find('`', begin + 1);
  if (end == std::string::npos) {
    at = std::string::npos;
    return {};
  }
  at = end + 1;
  return text.substr(begin + 1, end - begin - 1);
}

void read_pairs(const std::string& tag, const std::string& list, Expected& expected) {
  for (std::size_t at = 0; at < list.size();) {
    const std::string path = quoted(list, at);
    const std::string value = at == std::string::npos ? "" : quoted(list, at);
    if (at != std::string::npos) {
      expected.insert(fmt::format("{} {} {}", tag, path, value));
    }
  }
}

/// The README's table and the list below it, by file.
std::map<std::string, Expected> read_expected(const std::string& readme) {
  std::map<std::string, Expected> expected;
  for (std::size_t at = 0; at < readme.size();) {
    const std::size_t end = std::min(readme.find('\n', at), readme.size());
    const std::string line = readme.substr(at, end - at);
    at = end + 1;
    if (line.starts_with("## Look-alikes")) {
      break;
    }
    const std::size_t cell = line.size() < 3 ? std::string::npos : line.rfind("| ", line.size() - 3);
    const bool row = line.starts_with("| ") && !line.starts_with("| file ") && line.find("` = `") != std::string::npos;
    if (row) {
      const std::string file = line.substr(2, line.find(" |") - 2);
      std::string cells = line.substr(cell + 2);
      for (std::size_t part = 0; part < cells.size();) {
        const std::size_t stop = std::min(cells.find("<br>", part), cells.size());
        const std::string pair = cells.substr(part, stop - part);
        read_pairs(pair.substr(0, pair.find(':')), pair, expected[file]);
        part = stop + 4;
      }
    } else if (line.starts_with("- ") && line.find("` = `") != std::string::npos) {
      read_pairs(line.substr(2, line.find(" (") - 2), line, expected["DeepLearningExamples__configs.yml"]);
    }
  }
  return expected;
}

TEST(Recognize, RealConfigurations) {
  const char* shared = std::getenv("UNIDLE_SHARED");
  if (shared == nullptr) {
    GTEST_SKIP() << "UNIDLE_SHARED is not set";
  }
  const std::filesystem::path folder = std::filesystem::path(shared) / "real/configs";
  const auto expected = read_expected(read_file(folder / "README.md"));
  std::size_t right = 0;
  std::size_t wrong = 0;
  std::size_t missed = 0;
  std::size_t total = 0;
  for (const auto& [name, wanted] : expected) {
    total += wanted.size();
    Expected found;
    for (const Recognized& setting : recognize(folder / name).knobs) {
      if (const std::string tag = tag_of(setting); !tag.empty()) {
        found.insert(fmt::format("{} {} {}", tag, setting.path, setting.source));
      }
    }
    for (const std::string& line : found) {
      const bool is_right = wanted.contains(line);
      right += is_right;
      wrong += !is_right;
      if (!is_right) {
        fmt::print("{}: wrong  {}\n", name, line);
      }
    }
    for (const std::string& line : wanted) {
      if (!found.contains(line)) {
        ++missed;
        fmt::print("{}: missed {}\n", name, line);
      }
    }
  }
  const double precision = static_cast<double>(right) / static_cast<double>(right + wrong);
  const double recall = static_cast<double>(right) / static_cast<double>(right + missed);
  fmt::print("{} files, {} settings: precision {:.3f}, recall {:.3f}\n", expected.size(), total, precision, recall);
  EXPECT_EQ(expected.size(), 18u);
  EXPECT_EQ(total, 245u) << "the table was not read as it says";
  EXPECT_GE(precision, 0.98);
  EXPECT_GE(recall, 0.95);
}

}  // namespace
}  // namespace unidle::knobs
