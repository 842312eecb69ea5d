#include "unidle/tune/trials/applied.h"

#include <set>
#include <string_view>

#include "unidle/record/note_types.h"

namespace unidle::tune {

namespace {

/// Whether the command failed by itself.
bool failed(const record::Reader& reader) {
  const auto exit = reader.meta(record::meta::kExit);
  const nlohmann::json code = exit && exit->is_object() ? exit->value("code", nlohmann::json()) : nlohmann::json();
  return code.is_number_integer() && code != 0;
}

}  // namespace

std::map<std::string, Applied> applied_settings(const record::Reader& reader, const knobs::Settings& asked) {
  std::set<std::string> taken;
  std::map<std::string, std::string> refused;
  std::map<std::string, std::string> in_part;
  record::each_note<record::NoteType::kApply>(reader.notes(), [&](const auto& note) {
    const std::string knob = note.text("knob");
    const std::string status = note.text("status");
    if (knob.empty()) {
      return;
    }
    if (status == "taken") {
      taken.insert(knob);
      return;
    }
    const std::string why = note.text("why");
    (status == "refused-in-part" ? in_part : refused)[knob] = why.empty() ? "the program has another value" : why;
  });
  const std::string_view ended =
      failed(reader) ? "the program failed before it could be read back; without this setting it may not fail"
                     : "the program ended before it could be read back";
  std::map<std::string, Applied> applied;
  for (const auto& [knob, value] : asked) {
    if (const auto found = refused.find(knob); found != refused.end()) {
      applied[knob] = {false, found->second};
    } else {
      const bool is_taken = taken.contains(knob);
      const auto part = in_part.find(knob);
      const std::string_view unread = is_taken ? "" : ended;
      applied[knob] = {is_taken, part != in_part.end() ? part->second : std::string(unread)};
    }
  }
  return applied;
}

}  // namespace unidle::tune
