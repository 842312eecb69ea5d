#include "unidle/trace/detail/arithmetic.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <string_view>
#include <tuple>

#include "unidle/base/substrings.h"

namespace unidle::trace::detail {

namespace {

/// Operators that launched nothing, beside a device that works, ran on the host, or computed nothing but shapes. This
/// share of all operations changes nothing. Own choice.
constexpr double kLeastOnHost = 0.01;

bool is_in(const Span& span, double at) { return at >= span.begin && at < span.end; }

/// The operators that call no other of the list, by thread and begin. Under autocast, einsum's product in fp32 calls
/// the one in bf16 that does the work; a grouped product may call products of its parts.
std::vector<Arithmetic> innermost(std::vector<Arithmetic> all) {
  std::ranges::sort(all, [](const Arithmetic& a, const Arithmetic& b) {
    return std::tie(a.thread, a.begin, b.end) < std::tie(b.thread, b.begin, a.end);
  });
  std::vector<Arithmetic> inner;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Arithmetic* next = i + 1 < all.size() && all[i + 1].thread == all[i].thread ? &all[i + 1] : nullptr;
    // By its middle: written times are rounded, and the next one may seem to begin a little before this one ends.
    if (next == nullptr || (next->begin + next->end) / 2 >= all[i].end) {
      inner.push_back(all[i]);
    }
  }
  return inner;
}

/// `inner`: as innermost() returns it.
Arithmetic* operator_at(std::vector<Arithmetic>& inner, std::uint32_t thread, double at) {
  const auto after = std::upper_bound(
      inner.begin(), inner.end(), std::tie(thread, at),
      [](const auto& place, const Arithmetic& work) { return place < std::tie(work.thread, work.begin); });
  if (after == inner.begin()) {
    return nullptr;
  }
  Arithmetic& before = *std::prev(after);
  return before.thread == thread && at <= before.end ? &before : nullptr;
}

/// Whether a kernel that no counted operator launched may be a product. Names of generated kernels say nothing, except
/// those of Inductor's that only map or reduce.
bool may_multiply(Collector& seen, const Work& work, const Call* call) {
  static constexpr auto kProducts = std::to_array<std::string_view>(
      {"gemm", "Gemm", "GEMM", "fmha", "attn", "Attn", "attention", "Attention", "triton_tem"});
  static constexpr auto kOthers =
      std::to_array<std::string_view>({"triton_poi_", "triton_red_", "triton_per_", "triton_for_"});
  const std::string& name = seen.names[work.name];
  if (starts_with_any(name, kOthers)) {
    return false;
  }
  if (uses_matrix_units(name) || contains_any(name, kProducts)) {
    return true;
  }
  return call != nullptr && call->by_driver &&
         !seen.threads[call->thread].torch_operators.joined().contains(to_ns(call->begin));
}

/// Notes which operators launched work. False if a kernel of the steps may be a product of none of them.
bool attribute(Collector& seen, const Span& steps, std::vector<Arithmetic>& inner) {
  for (auto& [id, device] : seen.devices) {
    for (const Work& work : device.ordered()) {
      const Call* call = work.correlation < 0 ? nullptr : seen.calls.find(work.correlation);
      if (work.kind != WorkKind::kKernel || (call != nullptr && !is_in(steps, call->begin))) {
        continue;
      }
      Arithmetic* launcher = call != nullptr ? operator_at(inner, call->thread, call->begin) : nullptr;
      if (launcher != nullptr) {
        launcher->launched = true;
      } else if (may_multiply(seen, work, call)) {
        return false;
      }
    }
  }
  return true;
}

}  // namespace

std::vector<FlopsOfType> flops_within(Collector& seen, const Span& steps) {
  if (!seen.arithmetic_whole || std::ranges::any_of(seen.uncounted, [&](double at) { return is_in(steps, at); })) {
    return {};
  }
  std::vector<Arithmetic> inner = innermost(seen.arithmetic);
  if (!attribute(seen, steps, inner)) {
    return {};
  }
  std::map<std::uint32_t, double> of_type;
  double all = 0;
  double on_host = 0;
  for (const Arithmetic& work : inner) {
    if (!is_in(steps, work.begin)) {
      continue;
    }
    // An operator without a length cannot be placed among the others.
    if (!work.flops || work.end <= work.begin) {
      return {};
    }
    of_type[work.type] += *work.flops;
    all += *work.flops;
    on_host += seen.devices.empty() || work.launched ? 0 : *work.flops;
  }
  if (!std::isfinite(all) || on_host > kLeastOnHost * all) {
    return {};
  }
  std::vector<FlopsOfType> flops;
  for (const auto& [type, operations] : of_type) {
    flops.push_back({seen.names[type], operations});
  }
  std::ranges::stable_sort(flops, std::greater<>(), &FlopsOfType::flops);
  return flops;
}

}  // namespace unidle::trace::detail
