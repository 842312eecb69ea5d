// Small helpers that rules build findings with.
#pragma once

#include <optional>
#include <string>

#include "unidle/diagnose/context.h"

namespace unidle::diagnose::detail {

/// A fix from the live program's value of `knob` (null when unknown).
Fix make_fix(const Context& context, std::string knob, nlohmann::json to, FixClass fix_class, std::string how);

/// Where the configuration sets `knob`.
std::optional<std::string> where_set(const Context& context, const std::string& knob);

/// The effective value as a whole number; nothing when unknown or not one.
std::optional<std::int64_t> effective_int(const Context& context, const std::string& knob);
/// The effective value as a switch: on for everything but false, off, 0 and fp32.
std::optional<bool> effective_on(const Context& context, const std::string& knob);

}  // namespace unidle::diagnose::detail
