#include "unidle/diagnose/signals.h"

#include <algorithm>

namespace unidle::diagnose {

std::optional<std::string> Signals::effective(const std::string& knob) const {
  const auto found = settings.find(knob);
  return found == settings.end() ? std::nullopt : found->second.effective;
}

bool Signals::model_in_16_bits() const { return model_dtype == "bfloat16" || model_dtype == "float16"; }

std::optional<double> Signals::share_of_step(std::optional<double> device_s) const {
  const double whole_s = device_period_s.value_or(step_s.value_or(0));
  return device_s && whole_s > 0 ? std::optional(std::clamp(*device_s / whole_s, 0.0, 1.0)) : std::nullopt;
}

}  // namespace unidle::diagnose
