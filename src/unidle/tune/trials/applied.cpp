#include "unidle/tune/trials/applied.h"

#include <set>

#include "unidle/base/json.h"

namespace unidle::tune {

std::map<std::string, Applied> applied_settings(const record::Reader& reader, const knobs::Settings& asked) {
  std::set<std::string> taken;
  std::map<std::string, std::string> refused;
  std::map<std::string, std::string> in_part;
  for (const record::Note& note : reader.notes()) {
    const std::string knob = text_in(note.body, "knob");
    if (text_in(note.body, "type") != "apply" || knob.empty()) {
      continue;
    }
    const std::string status = text_in(note.body, "status");
    if (status == "taken") {
      taken.insert(knob);
      continue;
    }
    const std::string why = text_in(note.body, "why");
    (status == "refused-in-part" ? in_part : refused)[knob] = why.empty() ? "the program has another value" : why;
  }
  std::map<std::string, Applied> applied;
  for (const auto& [knob, value] : asked) {
    if (const auto found = refused.find(knob); found != refused.end()) {
      applied[knob] = {false, found->second};
    } else if (taken.contains(knob)) {
      applied[knob] = {true, ""};
    } else {
      const auto part = in_part.find(knob);
      applied[knob] = {false, part != in_part.end() ? part->second : "the program ended before it could be read back"};
    }
  }
  return applied;
}

}  // namespace unidle::tune
