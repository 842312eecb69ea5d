#include "unidle/data/detail/slot_budget.h"

#include <fmt/format.h>

#include <algorithm>

#include "unidle/base/error.h"
#include "unidle/base/units.h"
#include "unidle/telemetry/host.h"

namespace unidle::data::detail {

namespace {

constexpr std::uint64_t kShareOfMemory = 4;  // the rest is for the program and the batches it keeps

std::uint64_t default_budget() {
  static const telemetry::HostFacts host = telemetry::read_host_facts();  // memory size does not change
  return std::min(host.memory_bytes, host.memory_limit.value_or(host.memory_bytes)) / kShareOfMemory;
}

}  // namespace

std::int64_t least_slots(const Plan& plan) { return 2 + plan.straddle(); }

std::int64_t slot_count(const Source& source, const LoaderOptions& options, const Plan& plan, int workers) {
  // An item that spans batches needs all their slots while the user still holds an earlier one.
  const std::int64_t least = least_slots(plan);
  const std::int64_t wanted = std::max(least, std::int64_t{workers} * options.prefetch + plan.straddle());
  std::uint64_t bytes = 0;
  for (const Field& field : source.fields()) {
    bytes += field.bytes() * static_cast<std::uint64_t>(plan.batch());
  }
  const std::uint64_t most = options.allocator != nullptr ? options.allocator->most_bytes() : UINT64_MAX;
  const std::uint64_t budget =
      options.max_bytes > 0 ? static_cast<std::uint64_t>(options.max_bytes) : std::min(default_budget(), most);
  const std::uint64_t room = budget / std::max<std::uint64_t>(bytes, 1);
  if (options.max_bytes > 0 && room < static_cast<std::uint64_t>(least)) {
    throw Error(ErrorCode::kUsage, "loader option max_bytes",
                fmt::format("has no room for {} batches of {}, which is the least; found {}", least,
                            format_bytes(bytes), format_bytes(budget)),
                fmt::format("max_bytes={} or more, or a smaller batch", bytes * static_cast<std::uint64_t>(least)));
  }
  return std::clamp(static_cast<std::int64_t>(std::min<std::uint64_t>(room, 1U << 30U)), least, wanted);
}

}  // namespace unidle::data::detail
