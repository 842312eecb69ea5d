// Lines by which a program claims to have finished.
#pragma once

#include "unidle/logs/detail/failures.h"

namespace unidle::logs::detail {

/// What a line says has ended.
enum class Claim : std::uint8_t {
  kNone,
  kPart,  // training, or only a part of it: "Training took 50 s"
  kEnd,
};
/// "Training complete", "Early stopping triggered", a bare "success"; not "Successfully loaded", not "success rate".
Claim claim_of(const LogLine& line);
/// "All folds completed in 2.4 h", "Experiment finished!": the whole line is about the end of everything.
bool ends_all(const LogLine& line);
/// "Done.", "finish", "Exit code: 0" and nothing else; a program may print that after each of its parts.
bool is_bare_end(const LogLine& line);
/// Whether the claim says what succeeded; a bare "success" may be about something else.
bool names_training(const LogLine& line);

}  // namespace unidle::logs::detail
