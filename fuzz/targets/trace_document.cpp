// The analysis of a profiler window as a record keeps it.
#include <nlohmann/json.hpp>

#include "fuzz.h"
#include "unidle/trace/document.h"

namespace unidle::fuzz::targets {

const Target& trace_document() {
  static const Target kTarget = {"trace_document", [](std::string_view bytes) {
                                   const nlohmann::json document = nlohmann::json::parse(bytes, nullptr, false);
                                   if (document.is_discarded()) {
                                     return;
                                   }
                                   may_refuse(
                                       [&] {
                                         const auto summary = unidle::trace::summary_from_json(document, "input");
                                         unidle::trace::to_text(summary, 80);
                                         unidle::trace::to_json(summary);
                                       },
                                       {ErrorCode::kCorrupt});
                                 }};
  return kTarget;
}

}  // namespace unidle::fuzz::targets
