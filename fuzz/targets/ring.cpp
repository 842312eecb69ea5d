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
  std::vector<probe::Slot> events;
  reader->drain(events);
  require(events.size() + reader->refused() <= bytes.size() / sizeof(probe::Slot));
  ScratchRecord record;
  observe::EventWriter writer(record.writer());
  for (const probe::Slot& event : events) {
    writer.take(reader->pid(), event);
  }
  writer.write_work();
  record.diagnose();
  events.clear();
  reader->drain(events);
  require(events.empty());
  reader->release();
  reader->dropped();
  reader->closed();
}

}  // namespace

const Target& ring() {
  static const Target kTarget = {"ring", run_ring};
  return kTarget;
}

}  // namespace unidle::fuzz::targets
