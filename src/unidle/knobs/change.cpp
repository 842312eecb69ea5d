#include "unidle/knobs/change.h"

#include <utility>

namespace unidle::knobs {

Change change_of(std::string knob, std::optional<Value> from, std::optional<Value> to, std::string reason) {
  const KnobClass knob_class = class_of(knob);
  return {std::move(knob), std::move(from), std::move(to), knob_class, std::move(reason)};
}

}  // namespace unidle::knobs
