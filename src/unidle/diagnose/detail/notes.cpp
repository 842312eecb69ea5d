#include "unidle/diagnose/detail/notes.h"

#include <utility>

#include "unidle/base/json.h"

namespace unidle::diagnose::detail {

Notes::Notes(std::vector<record::Note> notes, std::optional<std::int64_t> training) : training_(training) {
  for (record::Note& note : notes) {
    if (!note.body.is_object()) {
      continue;
    }
    record::Note& kept = newest_[{text_in(note.body, "type"), note.process, record::key_of(note)}];
    if (note.t_ns >= kept.t_ns) {
      kept = std::move(note);
    }
  }
}

bool Notes::feeds_training(const nlohmann::json& id) const {
  bool known = false;
  bool feeds = false;
  each<record::NoteType::kLoader>([&](const auto& note) {
    if (!id.is_null() && note.value("id") == id) {
      known = true;
      feeds = feeds || note.text("use") == "train";
    }
  });
  return feeds || !known;
}

void read_notes(const Notes& notes, Signals& signals) {
  read_model(notes, signals);
  read_input(notes, signals);
  read_step(notes, signals);
}

}  // namespace unidle::diagnose::detail
