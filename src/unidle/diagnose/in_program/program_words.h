// What the program itself calls a setting, and the lines that set it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "unidle/diagnose/diagnosis.h"
#include "unidle/diagnose/in_program/framework.h"
#include "unidle/diagnose/in_program/sources.h"
#include "unidle/diagnose/signals.h"
#include "unidle/knobs/config_file.h"
#include "unidle/knobs/place.h"
#include "unidle/knobs/python_edit.h"
#include "unidle/knobs/reach.h"

namespace unidle::diagnose {

/// Reads the sources of a program. Not thread-safe; `signals` must outlive it.
class ProgramWords {
 public:
  explicit ProgramWords(const Signals& signals);

  /// The program's own words for the change; nothing when it is unknown where the program sets the knob.
  std::optional<knobs::InProgram> words_for(const knobs::Change& fix);
  /// The command that makes all of these changes, each of which one of its options makes.
  std::string command_with(const std::vector<knobs::Change>& fixes) const;
  /// Sets what makes validations so much rarer: the framework's argument, or a setting of the program itself. Such a
  /// change can be tried. It is semantic if the program may decide something by the results.
  void put_rarer_validation(double rarer_by, knobs::Change& fix);

  /// The line at the finding's place, unless the file was changed since the run.
  std::vector<SourceLine> line_at(const std::optional<std::string>& where);
  Sources& sources() { return sources_; }

 private:
  struct AtCall {
    knobs::InProgram words;
    knobs::PythonSource::Given given;
  };

  /// True when the file was written after the run began.
  bool is_changed(const std::string& where) const;
  bool of_package() const { return signals_.loader && signals_.loader->of_package(); }
  std::string place_of_call(const knobs::Change& fix) const;
  /// False when the loader's batches are not the ones that the fix is about.
  bool is_of_loader(const knobs::Change& fix) const;
  std::optional<AtCall> by_call(const knobs::Change& fix);
  /// True when a configured value of the knob is not in effect.
  bool is_ignored(const knobs::Change& fix) const;
  /// torch.set_num_threads(1), where the program calls it.
  std::optional<knobs::InProgram> by_thread_call(const knobs::Change& fix);
  knobs::Reach reach_of(const std::vector<knobs::Change>& fixes) const;
  std::optional<knobs::InProgram> by_option(const knobs::Change& fix) const;
  /// Variables that set it before the command.
  std::optional<knobs::InProgram> by_variables(const knobs::Change& fix) const;
  std::optional<knobs::InProgram> by_framework(const knobs::Change& fix) const;
  std::optional<knobs::InProgram> by_file(const knobs::Change& fix);
  /// Nothing when the file says something else at that line by now.
  static std::optional<knobs::InProgram> in_file(const knobs::Change& fix, const knobs::Place& place,
                                                 const std::string& configured, knobs::ConfigFile file);
  /// What to write around the program's own call of the model.
  std::optional<knobs::InProgram> by_code(const knobs::Change& fix);

  const Signals& signals_;
  Sources sources_;
  std::vector<CallInProgram> frameworks_;
};

}  // namespace unidle::diagnose
