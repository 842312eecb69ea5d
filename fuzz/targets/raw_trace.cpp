// The events of a profiler window as they stand: what `unidle trace` merges into a timeline.
#include "fuzz.h"
#include "unidle/trace/detail/events.h"

namespace unidle::fuzz::targets {

const Target& raw_trace() {
  static const Target kTarget = {"raw_trace", [](std::string_view bytes) {
                                   read_source(bytes, [](logs::Source& source) {
                                     unidle::trace::detail::for_each_raw_event(source, [](nlohmann::json& event) {
                                       event.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
                                     });
                                   });
                                 }};
  return kTarget;
}

}  // namespace unidle::fuzz::targets
