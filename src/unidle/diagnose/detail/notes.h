// What a program noted about itself; docs/probe-format.md lists the notes.
#pragma once

#include <cstdint>
#include <map>
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

  void read(Signals& signals) const;

 private:
  using Key = std::tuple<std::string, std::int64_t, std::string>;  // type, process, subject

  template <record::NoteType type, typename Visit>
  void each(Visit visit) const;
  void read_loader(Signals& signals) const;
  void read_validation_loaders(Signals& signals) const;
  void read_samples(Signals& signals) const;
  void read_samples_again(SampleFacts& facts) const;
  void read_affinity(Signals& signals) const;
  void read_waits(Signals& signals) const;
  void read_model(Signals& signals) const;
  void read_step(Signals& signals) const;
  void read_device(Signals& signals) const;
  bool feeds_training(const nlohmann::json& id) const;

  std::map<Key, record::Note> newest_;
  std::optional<std::int64_t> training_;
};

}  // namespace unidle::diagnose::detail
