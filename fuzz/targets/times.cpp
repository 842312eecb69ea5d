// Times as people and records write them: with a unit, and in the forms that unidle runs takes.
#include "fuzz.h"
#include "unidle/base/clock.h"
#include "unidle/base/units.h"
#include "unidle/record/listing.h"

namespace unidle::fuzz::targets {

namespace {

void run_times(std::string_view bytes) {
  for (const std::string_view line : lines_of(bytes)) {
    const std::string text(line);
    if (const auto seconds = parse_seconds(text)) {
      require(*seconds > 0 && nanoseconds(*seconds) >= 0);
    }
    for (const char* form : {"%Y-%m-%d", "%Y-%m-%dT%H", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S"}) {
      parse_utc(text, form);
    }
    constexpr const char* kRecords = "%Y-%m-%dT%H:%M:%SZ";
    if (const auto time = parse_utc(text, kRecords)) {
      require(format_utc(*time) == text);
    }
    record::RunSummary run;
    run.name = text;
    run.started_utc = text;
    record::RunFilter filter;
    filter.since_ns = run.started_ns();
    require(!filter.since_ns || filter.admits(run));
  }
}

}  // namespace

const Target& times() {
  static const Target kTarget = {"times", run_times};
  return kTarget;
}

}  // namespace unidle::fuzz::targets
