#include "unidle/probe/event_types.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <regex>
#include <string>

namespace unidle::probe {
namespace {

TEST(EventTypes, TheListIsInTheOrderOfItsKinds) {
  for (std::size_t i = 0; i < kEventShapes.size(); ++i) {
    EXPECT_EQ(static_cast<std::size_t>(kEventShapes[i].kind), i + 1) << kEventShapes[i].name;
    EXPECT_EQ(&shape_of(kEventShapes[i].kind), &kEventShapes[i]);
  }
}

TEST(EventTypes, EveryKindOfTheHeaderIsInTheList) {
  std::ifstream header(UNIDLE_SOURCE_DIR "/src/unidle/probe/unidle_probe.h");
  const std::regex kind(R"(.*\bUNIDLE_EVENT_([A-Z_]+) = (\d+).*)");
  std::map<std::string, std::size_t> found;
  for (std::string line; std::getline(header, line);) {
    std::smatch parts;
    if (std::regex_match(line, parts, kind)) {
      found[parts[1]] = std::stoul(parts[2]);
    }
  }
  std::map<std::string, std::size_t> listed;
  for (const EventShape& shape : kEventShapes) {
    listed[std::string(shape.name)] = static_cast<std::size_t>(shape.kind);
  }
  EXPECT_EQ(found, listed);
}

/// The name at the beginning of a cell: "ready: batches that were ready".
std::string name_in(const std::string& cell) { return cell.substr(0, cell.find(':')); }

/// The page has a row for each kind: | kind | name | meaning | a | b | value | reserved |
TEST(EventTypes, TheDocumentationNamesThemAll) {
  std::ifstream page(UNIDLE_SOURCE_DIR "/docs/probe-format.md");
  ASSERT_TRUE(page);
  const std::regex row(R"(\| (\d+) \| ([A-Z_]+) \| (?:.* )?\| (?:(.*) )?\| (?:(.*) )?\| (?:(.*) )?\| (?:(.*) )?\|)");
  std::size_t rows = 0;
  for (std::string line; std::getline(page, line);) {
    std::smatch parts;
    if (!std::regex_match(line, parts, row)) {
      continue;
    }
    const std::size_t kind = std::stoul(parts[1]);
    ASSERT_TRUE(kind >= 1 && kind <= kEventShapes.size()) << line;
    const EventShape& shape = kEventShapes[kind - 1];
    rows += 1;
    EXPECT_EQ(parts[2].str(), shape.name);
    EXPECT_EQ(name_in(parts[3]), shape.a) << line;
    EXPECT_EQ(name_in(parts[4]), shape.b) << line;
    EXPECT_EQ(name_in(parts[5]), shape.value) << line;
    EXPECT_EQ(name_in(parts[6]), shape.reserved) << line;
  }
  EXPECT_EQ(rows, kEventShapes.size());
}

TEST(EventTypes, FieldsAreReadWhereTheyLie) {
  const unidle_event event{1, 2, 3, 4, 5, 6.5, UNIDLE_EVENT_SAMPLE, 0, 7};
  const EventOf<UNIDLE_EVENT_SAMPLE> sample(event);
  EXPECT_EQ(sample.count("first"), 4U);
  EXPECT_EQ(sample.count("bytes"), 5U);
  EXPECT_EQ(sample.number("samples"), 6.5);
  EXPECT_EQ(sample.count("slowest_ns"), 7U);
}

}  // namespace
}  // namespace unidle::probe
