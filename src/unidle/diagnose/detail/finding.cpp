#include "unidle/diagnose/detail/finding.h"

#include <utility>

namespace unidle::diagnose::detail {

Fix make_fix(const Context& context, std::string knob, nlohmann::json to, FixClass fix_class, std::string how) {
  Fix fix;
  if (const auto now = context.signals.effective(knob)) {
    fix.from = setting_value(*now);
  }
  fix.knob = std::move(knob);
  fix.to = std::move(to);
  fix.fix_class = fix_class;
  fix.how = std::move(how);
  return fix;
}

std::optional<std::string> where_set(const Context& context, const std::string& knob) {
  const auto found = context.signals.settings.find(knob);
  if (found == context.signals.settings.end() || found->second.configured_at.empty()) {
    return std::nullopt;
  }
  return found->second.configured_at;
}

std::optional<std::int64_t> effective_int(const Context& context, const std::string& knob) {
  const auto text = context.signals.effective(knob);
  if (!text) {
    return std::nullopt;
  }
  const nlohmann::json value = setting_value(*text);
  return value.is_number_integer() ? std::optional(value.get<std::int64_t>()) : std::nullopt;
}

std::optional<bool> effective_on(const Context& context, const std::string& knob) {
  const auto text = context.signals.effective(knob);
  return text ? std::optional(!in_effect("off", *text)) : std::nullopt;
}

}  // namespace unidle::diagnose::detail
