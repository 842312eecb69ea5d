// A ring file, drained twice, and its events as rows of a record.
#include "unidle/probe/ring.h"
#include "fuzz.h"
#include "scratch_record.h"
#include "unidle/observe/events.h"
#include "unidle/probe/ring_reader.h"

namespace unidle::fuzz::targets {

namespace {

void run_ring(std::string_view bytes) {
  std::string problem;
  const auto reader = probe::RingReader::open(put("1.ring", bytes), problem);
  require((reader == nullptr) != problem.empty());
  if (reader == nullptr) {
    return;
  }
  std::vector<unidle_event> events;
  reader->drain(events);
  require(events.size() + reader->refused() <= bytes.size() / sizeof(unidle_event));
  ScratchRecord record;
  observe::EventMerger merger(record.writer());
  for (const unidle_event& event : events) {
    merger.take(reader->pid(), event);
  }
  merger.write_seconds(INT64_MAX);
  merger.finish();
  record.diagnose();
  events.clear();
  reader->drain(events);
  require(events.empty());
  reader->dropped();
  reader->closed();
}

}  // namespace

const Target& ring() {
  static const Target kTarget = {"ring", run_ring};
  return kTarget;
}

}  // namespace unidle::fuzz::targets
