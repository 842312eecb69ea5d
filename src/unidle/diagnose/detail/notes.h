// What a program noted about itself; docs/probe-format.md lists the notes.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "unidle/diagnose/signals.h"
#include "unidle/record/note_types.h"
#include "unidle/record/record.h"

namespace unidle::diagnose::detail {

/// Of several notes with the same process, type and key, the newest counts; its numbers are totals.
class Notes {
 public:
  /// `training`: the process whose loaders and settings are read; others are its workers or ranks.
  Notes(std::vector<record::Note> notes, std::optional<std::int64_t> training);

  /// Calls `visit` with each note of the type.
  template <record::NoteType type, typename Visit>
  void each(Visit visit) const {
    const std::string name(record::shape_of(type).name);
    for (auto at = newest_.lower_bound({name, INT64_MIN, ""}); at != newest_.end() && std::get<0>(at->first) == name;
         ++at) {
      visit(record::NoteOf<type>(at->second));
    }
  }
  /// Also true if it is not known which process trains.
  template <record::NoteType type>
  bool of_training(const record::NoteOf<type>& note) const {
    return !training_ || note.process() == *training_;
  }
  /// Whether the loader with this id feeds training; an unknown one is taken to.
  bool feeds_training(const nlohmann::json& id) const;

 private:
  using Key = std::tuple<std::string, std::int64_t, std::string>;  // type, process, subject

  std::map<Key, record::Note> newest_;
  std::optional<std::int64_t> training_;
};

/// Adds all that follows from the notes: the three parts below.
void read_notes(const Notes& notes, Signals& signals);

void read_model(const Notes& notes, Signals& signals);
void read_input(const Notes& notes, Signals& signals);
void read_step(const Notes& notes, Signals& signals);

/// Adds a process's figure, if it has one, to the sum over the processes.
template <typename Number>
void add_to(std::optional<Number>& total, const std::optional<Number>& value) {
  if (value) {
    total = total.value_or(0) + *value;
  }
}

}  // namespace unidle::diagnose::detail
