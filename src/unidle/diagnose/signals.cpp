#include "unidle/diagnose/signals.h"

namespace unidle::diagnose {

std::optional<std::string> Signals::effective(const std::string& knob) const {
  const auto found = settings.find(knob);
  return found == settings.end() ? std::nullopt : found->second.effective;
}

}  // namespace unidle::diagnose
