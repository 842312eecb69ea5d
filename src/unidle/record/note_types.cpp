#include "unidle/record/note_types.h"

#include <algorithm>

namespace unidle::record {

std::string key_of(const Note& note) {
  const std::string type = text_in(note.body, "type");
  const auto* shape =
      std::find_if(kNoteShapes.begin(), kNoteShapes.end(), [&](const NoteShape& each) { return each.name == type; });
  std::string key;
  std::string_view left = shape == kNoteShapes.end() ? std::string_view() : shape->key;
  while (!left.empty()) {
    const auto value = note.body.find(take_word(left));
    key += value == note.body.end() ? "|" : "|" + json_text(*value, -1);
  }
  return key;
}

}  // namespace unidle::record
