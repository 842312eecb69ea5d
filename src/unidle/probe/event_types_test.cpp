#include "unidle/probe/event_types.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <regex>
#include <string>

#include "unidle/base/testing/generated_docs.h"

namespace unidle::probe {
namespace {

TEST(EventTypes, TheListIsInTheOrderOfItsKinds) {
  for (std::size_t i = 0; i < kEventShapes.size(); ++i) {
    EXPECT_TRUE(i == 0 || kEventShapes[i - 1].kind < kEventShapes[i].kind) << kEventShapes[i].name;
    EXPECT_EQ(&shape_of(kEventShapes[i].kind), &kEventShapes[i]);
    EXPECT_TRUE(is_kind(kEventShapes[i].kind));
  }
  EXPECT_FALSE(is_kind(0));
  EXPECT_FALSE(is_kind(UNIDLE_EVENT_STEP + 1));
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

/// One row per kind, as in docs/probe-format.md.
std::string markdown_rows() {
  std::string rows;
  for (const EventShape& shape : kEventShapes) {
    rows += "| " + std::to_string(shape.kind) + " | " + std::string(shape.name) + " |";
    for (const std::string_view cell : {shape.meaning, shape.a, shape.b, shape.value, shape.reserved}) {
      rows.append(cell.empty() ? "" : " ").append(cell).append(" |");
    }
    rows += '\n';
  }
  return rows;
}

/// The shim's host/event_kinds.py.
std::string python_kinds() {
  std::string module =
      "\"\"\"The kinds of events. Written by ./dev format from src/unidle/probe/event_types.h.\"\"\"\n\n";
  for (const EventShape& shape : kEventShapes) {
    module += std::string(shape.name) + " = " + std::to_string(shape.kind) + "\n";
  }
  module += "\n# What is known of a step.\n";
  for (const auto& [bit, name] : kStepFields) {
    module += std::string("SEEN_") + name + " = " + std::to_string(bit) + "\n";
  }
  return module;
}

TEST(EventTypes, TheTableOfTheDocumentationIsUpToDate) {
  unidle::testing::expect_generated_table(
      UNIDLE_SOURCE_DIR "/docs/probe-format.md",
      "| kind | name | meaning | a | b | value | reserved |\n|---|---|---|---|---|---|---|\n", markdown_rows());
}

TEST(EventTypes, TheShimsListIsUpToDate) {
  unidle::testing::expect_generated(UNIDLE_SOURCE_DIR "/python/shim/_unidle_shim/host/event_kinds.py", python_kinds());
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
