#include "unidle/diagnose/detail/copies.h"

namespace unidle::diagnose::detail {

std::optional<std::string> missing_for_copies(const Context& context) {
  const auto& transfer = context.signals.transfer;
  if (context.on_cpu) {
    return "copies to the device (the device is a CPU)";
  }
  if (!transfer || transfer->pinned_bytes + transfer->pageable_bytes <= 0) {
    return "the memory that copies to the device come from";
  }
  return context.transfer ? std::nullopt : std::optional(context.no_steps);
}

double pinned_part(const TransferFacts& facts) {
  return facts.pinned_bytes / (facts.pinned_bytes + facts.pageable_bytes);
}

}  // namespace unidle::diagnose::detail
