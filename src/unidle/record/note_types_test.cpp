#include "unidle/record/note_types.h"

#include <gtest/gtest.h>

#include <fstream>
#include <regex>
#include <set>
#include <sstream>

namespace unidle::record {
namespace {

std::vector<std::string> words(std::string_view text) {
  std::istringstream stream{std::string(text)};
  return {std::istream_iterator<std::string>(stream), {}};
}

TEST(NoteTypes, TheListIsInTheOrderOfItsNames) {
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < kNoteShapes.size(); ++i) {
    EXPECT_EQ(static_cast<std::size_t>(kNoteShapes[i].type), i) << kNoteShapes[i].name;
    EXPECT_TRUE(names.insert(kNoteShapes[i].name).second) << kNoteShapes[i].name;
  }
}

/// The page has one row per type, "| name [key] | fields |", that names all of its fields.
TEST(NoteTypes, TheDocumentationNamesThemAll) {
  std::ifstream page(UNIDLE_SOURCE_DIR "/docs/probe-format.md");
  ASSERT_TRUE(page);
  const std::regex row(R"(\| ([a-z_]+)(?: \[([a-z_, ]+)\])? \| (.*) \|)");
  std::set<std::string> told;
  for (std::string line; std::getline(page, line);) {
    std::smatch parts;
    if (!std::regex_match(line, parts, row)) {
      continue;
    }
    for (const NoteShape& shape : kNoteShapes) {
      if (parts[1].str() != shape.name) {
        continue;
      }
      told.insert(parts[1]);
      std::string key = parts[2];
      std::erase(key, ',');
      EXPECT_EQ(key, shape.key) << shape.name;
      const std::string fields = parts[3];
      for (const std::string& field : words(shape.fields)) {
        EXPECT_TRUE(std::regex_search(fields, std::regex("\\b" + field + "\\b"))) << shape.name << ": " << field;
      }
    }
  }
  for (const NoteShape& shape : kNoteShapes) {
    EXPECT_TRUE(told.contains(std::string(shape.name))) << shape.name;
  }
}

TEST(NoteTypes, AKeyIsOfTheFieldsOfItsType) {
  const Note note{1, 7, {{"type", "sync"}, {"call", "item"}, {"where", "train.py:3"}, {"count", 2}}};
  EXPECT_EQ(key_of(note), "|\"item\"|\"train.py:3\"");
  EXPECT_EQ(key_of(Note{1, 7, {{"type", "logging"}, {"where", "train.py:3"}}}), "");
  EXPECT_EQ(key_of(Note{1, 7, {{"type", "of a later version"}, {"id", 3}}}), "");
}

TEST(NoteTypes, ValuesOfAnyKindAreRead) {
  const std::vector<Note> notes = {Note{1, 7, {{"type", "rank"}, {"rank", "two"}, {"wait_seconds", 0.5}}},
                                   Note{2, 7, {{"type", "rank"}, {"wait_seconds", nullptr}}}, Note{3, 7, {{"type", 5}}},
                                   Note{4, 7, nlohmann::json::array()}};
  int seen = 0;
  each_note<NoteType::kRank>(notes, [&](const auto& note) {
    ++seen;
    EXPECT_FALSE(note.whole("rank"));
    EXPECT_EQ(note.number("wait_seconds").has_value(), note.t_ns() == 1);
    EXPECT_TRUE(note.value("step_seconds").is_null());
  });
  EXPECT_EQ(seen, 2);
}

}  // namespace
}  // namespace unidle::record
