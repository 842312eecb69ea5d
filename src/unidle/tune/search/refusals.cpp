#include "unidle/tune/search/refusals.h"

#include <fmt/format.h>

#include "unidle/knobs/knob.h"

namespace unidle::tune {

void Refusals::add(const std::string& asked, std::string sentence) {
  if (refused_.insert(asked).second) {
    sentences_.push_back(std::move(sentence));
  }
}

bool Refusals::contain(const std::string& knob, const knobs::Value& value) const {
  return refused_.contains(knobs::pair_key(knob, value));
}

void Refusals::take_out(LoggedTrial& trial) {
  for (const auto& [knob, why] : trial.result.refused) {
    const knobs::Value* value = trial.changes.find(knob);
    if (value == nullptr) {
      continue;
    }
    const std::string asked = knobs::pair_key(knob, *value);
    trial.changes.erase(knob);
    trial.why += "; " + fmt::format("{} was not taken: {}", knob, why);
    add(asked, fmt::format("{}: {}", asked, why));
  }
  for (const auto& [knob, asked] : knobs::Settings(trial.changes)) {
    const auto found = trial.result.effective.find(knob);
    if (found == trial.result.effective.end()) {
      continue;
    }
    const knobs::Value in_force = knobs::parse_value(*knobs::find_knob(knob), found->second).value_or(found->second);
    if (in_force == asked) {
      continue;
    }
    trial.changes.erase(knob);
    trial.why += "; " + fmt::format("{} was not taken: {} is in effect, not {}", knob, in_force, asked);
    add(knobs::pair_key(knob, asked), fmt::format("{}: asked for {}, but {} is in effect", knob, asked, in_force));
  }
}

}  // namespace unidle::tune
