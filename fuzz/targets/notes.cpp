// A notes file of an observed process, taken into a record that is then diagnosed.
#include "fuzz.h"
#include "scratch_record.h"
#include "unidle/observe/events.h"
#include "unidle/probe/ring_reader.h"

namespace unidle::fuzz::targets {

namespace {

void run_notes(std::string_view bytes) {
  ScratchRecord record;
  observe::EventWriter writer(record.writer());
  probe::NotesReader reader(put("42.jsonl", bytes));
  reader.drain([&](nlohmann::json body) { writer.take_note(42, 7, std::move(body)); });
  record.diagnose();
}

}  // namespace

const Target& notes() {
  static const Target kTarget = {"notes", run_notes};
  return kTarget;
}

}  // namespace unidle::fuzz::targets
