// What the rules about copies to the device have in common.
#pragma once

#include <optional>
#include <string>

#include "unidle/diagnose/context.h"

namespace unidle::diagnose::detail {

/// The signal that is missing to judge copies to a device by the memory they come from; nothing when all are there.
std::optional<std::string> missing_for_copies(const Context& context);

/// The part of the copied bytes that came from pinned memory, 0..1. Only when nothing is missing.
double pinned_part(const TransferFacts& facts);

}  // namespace unidle::diagnose::detail
