// Whether the command of a record can be run again here.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "unidle/account/run_data.h"
#include "unidle/diagnose/diagnosis.h"

namespace unidle::tune {

struct Repeatable {
  std::vector<std::string> command;
  std::filesystem::path folder;    // working folder
  std::vector<std::string> notes;  // what may make a new run differ from the recorded one, in words
};

/// `command`: in place of the record's, in the working folder; empty: the record's. Throws kInput, with what to do,
/// when it cannot be run again: it failed, is still running, was one of several processes, reads standard input, held a
/// secret, or is gone.
Repeatable repeatable_command(const account::RunData& run, const diagnose::Diagnosis& diagnosis,
                              const std::vector<std::string>& command);

}  // namespace unidle::tune
