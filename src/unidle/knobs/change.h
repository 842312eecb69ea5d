// A knob set to another value.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "unidle/knobs/knob.h"

namespace unidle::knobs {

/// A word of a command that another one replaces.
struct ChangedWord {
  std::size_t index;  // in the command
  std::string before;
  std::string after;
};

/// A change in the words of the program that it concerns, at the line where the program sets the knob.
struct InProgram {
  std::string words;                     // "num_workers=2", "--num-workers 2", "num_workers: 2"
  std::string call = {};                 // the function whose argument that is: "DataLoader"; empty for other words
  std::string where = {};                // file:line of the first changed line; empty for an option of the command
  std::vector<std::string> before = {};  // the lines that it concerns, as the file has them now; empty if unknown
  std::vector<std::string> after = {};   // these lines with the change; empty when the edit is not certain
  std::string command = {};              // the whole command, when one of its options makes the change
  std::optional<ChangedWord> word = {};  // the changed value, when the option is none that unidle knows by its name
};

/// What a diagnosis proposes as a fix, what advice edits and what a search has found.
struct Change {
  std::string knob;
  std::optional<Value> from;  // nothing when unknown
  std::optional<Value> to;    // nothing when the user has to find the value
  KnobClass knob_class = KnobClass::kExact;
  std::string reason;                        // one sentence: what it does, or what to do
  std::string depends = {};                  // condition under which it helps or is correct
  std::vector<std::string> paths = {};       // edited keys of the configuration; empty: the knob's own name
  std::string written = {};                  // key and value in the program's configuration; empty if unknown
  std::string written_at = {};               // its file:line
  std::optional<double> gain = {};           // measured: throughput with it divided by throughput without it
  bool by_hand = false;                      // needs a change by hand, not possible at run time
  bool in_code = false;                      // changes lines of the program, described in `reason`, instead of a knob
  std::string patch = {};                    // the change of the program as a unified diff to review; usually empty
  std::optional<InProgram> in_program = {};  // nothing when the program's own words are unknown
};

/// With the knob's own class.
Change change_of(std::string knob, std::optional<Value> from, std::optional<Value> to, std::string reason);

}  // namespace unidle::knobs
