#include "unidle/report/same_program.h"

#include <cstdint>
#include <initializer_list>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "unidle/base/json.h"
#include "unidle/record/note_types.h"

namespace unidle::report {

using account::RunData;

namespace {

/// The values of these fields, one text for each note of that type.
std::set<std::string> values_of(const RunData& run, record::NoteType type, std::initializer_list<const char*> keys) {
  std::set<std::string> found;
  for (const record::Note& note : run.notes) {
    if (record::is_of(note, type)) {
      std::string values;
      for (const char* key : keys) {
        values += note.body.value(key, nlohmann::json()).dump() + " ";
      }
      found.insert(std::move(values));
    }
  }
  return found;
}

/// A process tells of more files as it imports them: its last note counts.
std::set<std::string> digests_of(const RunData& run) {
  std::map<std::int64_t, std::string> newest;
  for (const record::Note& note : run.notes) {
    if (record::is_of(note, record::NoteType::kProgram)) {
      newest[note.process] = text_in(note.body, "digest");
    }
  }
  std::set<std::string> digests;
  for (const auto& [process, digest] : newest) {
    digests.insert(digest);
  }
  return digests;
}

}  // namespace

bool same_program(const RunData& a, const RunData& b) {
  const auto same = [&](std::string_view meta) { return a.meta_value(meta) == b.meta_value(meta); };
  const auto same_values = [&](record::NoteType type, std::initializer_list<const char*> keys) {
    return values_of(a, type, keys) == values_of(b, type, keys);
  };
  const std::set<std::string> digests = digests_of(a);
  return !digests.empty() && digests == digests_of(b) && same(record::meta::kCommand) && same(record::meta::kHost) &&
         same(record::meta::kGpus) && same_values(record::NoteType::kShim, {"python", "torch"}) &&
         same_values(record::NoteType::kApply, {"knob", "asked"});
}

}  // namespace unidle::report
