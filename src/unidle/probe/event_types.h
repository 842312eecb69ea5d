// The types of events with what their fields say: docs/probe-format.md tells what each of them means.
//
// This is the one list. Reading a field that its type does not have does not compile, a test holds the documentation
// against it, and the tests of the Python side hold what the shim writes against the documentation.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "unidle/probe/unidle_probe.h"

namespace unidle::probe {

/// What `a`, `b`, `value` and `reserved` of such an event say; empty: nothing, they are 0.
struct EventShape {
  unidle_event_kind kind;
  std::string_view name;
  std::string_view a{}, b{}, value{}, reserved{};
};

inline constexpr std::array kEventShapes = {
    EventShape{.kind = UNIDLE_EVENT_STEP, .name = "STEP", .a = "samples", .b = "micro_batches"},
    EventShape{.kind = UNIDLE_EVENT_INPUT, .name = "INPUT", .a = "ready"},
    EventShape{.kind = UNIDLE_EVENT_TRANSFER, .name = "TRANSFER", .a = "bytes", .b = "how"},
    EventShape{.kind = UNIDLE_EVENT_FORWARD, .name = "FORWARD"},
    EventShape{.kind = UNIDLE_EVENT_BACKWARD, .name = "BACKWARD"},
    EventShape{.kind = UNIDLE_EVENT_OPTIMIZER, .name = "OPTIMIZER"},
    EventShape{.kind = UNIDLE_EVENT_SYNC, .name = "SYNC", .value = "waits"},
    EventShape{.kind = UNIDLE_EVENT_SAMPLE,
               .name = "SAMPLE",
               .a = "first",
               .b = "bytes",
               .value = "samples",
               .reserved = "slowest_ns"},
    EventShape{.kind = UNIDLE_EVENT_STARTUP, .name = "STARTUP"},
    EventShape{.kind = UNIDLE_EVENT_VALIDATE, .name = "VALIDATE", .a = "samples"},
    EventShape{.kind = UNIDLE_EVENT_CHECKPOINT, .name = "CHECKPOINT"},
    EventShape{.kind = UNIDLE_EVENT_LOSS, .name = "LOSS", .a = "samples_before", .value = "loss"},
    EventShape{.kind = UNIDLE_EVENT_LOG, .name = "LOG"},
    EventShape{.kind = UNIDLE_EVENT_FLUSH, .name = "FLUSH"},
    EventShape{.kind = UNIDLE_EVENT_LOADER_START, .name = "LOADER_START"},
    EventShape{.kind = UNIDLE_EVENT_DEVICE, .name = "DEVICE"},
    EventShape{
        .kind = UNIDLE_EVENT_KERNELS, .name = "KERNELS", .a = "kernels", .b = "copied_bytes", .value = "matrix_share"},
};

/// REQUIRES: a kind of the list.
constexpr const EventShape& shape_of(unidle_event_kind kind) {
  return kEventShapes[static_cast<std::size_t>(kind) - UNIDLE_EVENT_STEP];
}

/// A whole number that events of that kind have in `a`, `b` or `reserved`; another name does not compile.
template <unidle_event_kind kind>
struct EventCount {
  consteval EventCount(const char* field) {  // NOLINT(google-explicit-constructor): it stands for the name
    constexpr const EventShape& kShape = shape_of(kind);
    const std::string_view name(field);
    place = name == kShape.a          ? &unidle_event::a
            : name == kShape.b        ? &unidle_event::b
            : name == kShape.reserved ? &unidle_event::reserved
                                      : throw "events of this kind have no such count";
  }
  std::uint64_t unidle_event::*place;
};

/// The same for the number in `value`.
template <unidle_event_kind kind>
struct EventNumber {
  consteval EventNumber(const char* field) {  // NOLINT(google-explicit-constructor): it stands for the name
    if (std::string_view(field) != shape_of(kind).value) {
      throw "events of this kind have no such number";
    }
  }
};

/// An event of that kind, which must outlive it. What it holds was written by somebody else and may be anything.
template <unidle_event_kind kind>
class EventOf {
 public:
  explicit EventOf(const unidle_event& event) : event_(&event) {}

  std::uint64_t count(EventCount<kind> field) const { return event_->*field.place; }
  double number(EventNumber<kind> /*field*/) const { return event_->value; }

 private:
  const unidle_event* event_;
};

}  // namespace unidle::probe
