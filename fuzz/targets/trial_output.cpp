// What a program printed at the end of a trial.
#include "fuzz.h"
#include "unidle/experiment/last_line_of.h"
#include "unidle/tune/trials/printed.h"

namespace unidle::fuzz::targets {

const Target& trial_output() {
  static const Target kTarget = {"trial_output", [](std::string_view bytes) {
                                   for (const bool with_validation : {false, true}) {
                                     tune::TrialResult result;
                                     tune::read_summary(bytes, with_validation, result);
                                     require(result.ok == result.problem.empty());
                                   }
                                   require(!experiment::last_line_of(bytes, "").empty());
                                 }};
  return kTarget;
}

}  // namespace unidle::fuzz::targets
