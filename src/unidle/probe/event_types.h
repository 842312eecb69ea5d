// The types of events and the meaning of their fields.
//
// This is the list; a test compares the numbers in the Python package with it. Reading a field that its type does not
// have does not compile. `./dev format` writes the table of docs/probe-format.md and the shim's host/event_kinds.py
// from it, and the tests of the Python package compare what the shim writes with that table.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <utility>

#include "unidle/probe/unidle_probe.h"

namespace unidle::probe {

/// An event type, with the meaning of its `a`, `b`, `value` and `reserved`: "NAME" or "NAME: MORE ABOUT IT"; empty:
/// unused, 0.
struct EventShape {
  unidle_event_kind kind;
  std::string_view name;
  std::string_view meaning{};
  std::string_view a{}, b{}, value{}, reserved{};
};

/// The name before the colon: "bytes" in "bytes: read".
constexpr std::string_view field_name(std::string_view field) { return field.substr(0, field.find(':')); }

inline constexpr std::array kEventShapes = {
    EventShape{.kind = UNIDLE_EVENT_STEP, .name = "STEP", .meaning = "one optimiser step, with fields of its own"},
    EventShape{.kind = UNIDLE_EVENT_SAMPLE,
               .name = "SAMPLE",
               .meaning = "samples were produced",
               .a = "first: its id",
               .b = "bytes: read",
               .value = "samples: how many; 0 is one",
               .reserved = "slowest_ns: of several, the time of the slowest"},
    EventShape{.kind = UNIDLE_EVENT_STARTUP, .name = "STARTUP", .meaning = "process start to first step"},
    EventShape{.kind = UNIDLE_EVENT_VALIDATE, .name = "VALIDATE", .meaning = "one validation", .a = "samples"},
    EventShape{.kind = UNIDLE_EVENT_CHECKPOINT, .name = "CHECKPOINT"},
    EventShape{.kind = UNIDLE_EVENT_LOSS,
               .name = "LOSS",
               .meaning = "training loss of a step that is over",
               .a = "samples_before: seen before this step",
               .value = "loss"},
    EventShape{
        .kind = UNIDLE_EVENT_DEVICE,
        .name = "DEVICE",
        .meaning = "the time that the device worked for step `step`, known only later",
        .a = "period_ns: of the device, from the end of the work of the step before to the end of this one's; 0: not "
             "known"},
    EventShape{.kind = UNIDLE_EVENT_KERNELS,
               .name = "KERNELS",
               .meaning = "one second of device `thread`: the time in which kernels, copies or fills ran",
               .a = "kernels",
               .b = "copied_bytes",
               .value = "matrix_share: of the kernels' time on matrix units, -1 without kernels"},
};

/// The parts of a step: the bit in `seen`, and the name.
inline constexpr std::array kStepFields = {
    std::pair{UNIDLE_STEP_INPUT, "INPUT"},         std::pair{UNIDLE_STEP_TRANSFER, "TRANSFER"},
    std::pair{UNIDLE_STEP_FORWARD, "FORWARD"},     std::pair{UNIDLE_STEP_BACKWARD, "BACKWARD"},
    std::pair{UNIDLE_STEP_OPTIMIZER, "OPTIMIZER"}, std::pair{UNIDLE_STEP_SYNC, "SYNC"},
    std::pair{UNIDLE_STEP_LOSS, "LOSS"},
};

constexpr bool is_kind(std::uint32_t kind) {
  return std::any_of(kEventShapes.begin(), kEventShapes.end(),
                     [kind](const EventShape& shape) { return static_cast<std::uint32_t>(shape.kind) == kind; });
}

/// REQUIRES: the list has this kind.
constexpr const EventShape& shape_of(unidle_event_kind kind) {
  return *std::find_if(kEventShapes.begin(), kEventShapes.end(),
                       [kind](const EventShape& shape) { return shape.kind == kind; });
}

/// The name of an integer field of this event type, in `a`, `b` or `reserved`; any other name does not compile.
template <unidle_event_kind kind>
struct EventCount {
  consteval EventCount(const char* field) {  // NOLINT(google-explicit-constructor): names a field
    constexpr const EventShape& kShape = shape_of(kind);
    const std::string_view name(field);
    place = name == field_name(kShape.a)          ? &unidle_event::a
            : name == field_name(kShape.b)        ? &unidle_event::b
            : name == field_name(kShape.reserved) ? &unidle_event::reserved
                                                  : throw "events of this kind have no such count";
  }
  std::uint64_t unidle_event::*place;
};

/// The same for the number in `value`.
template <unidle_event_kind kind>
struct EventNumber {
  consteval EventNumber(const char* field) {  // NOLINT(google-explicit-constructor): names a field
    if (std::string_view(field) != field_name(shape_of(kind).value)) {
      throw "events of this kind have no such number";
    }
  }
};

/// An event of this type, which must outlive it. Another program wrote its fields; they may hold any value.
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
