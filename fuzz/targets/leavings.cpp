// What a killed `unidle run` leaves: rows of its record, a ring, notes and marks, parted by lines "== ". All of it is
// put into the record, which is then diagnosed.
#include "fuzz.h"
#include "scratch_record.h"
#include "unidle/observe/recovery.h"

namespace unidle::fuzz::targets {

namespace {

void run_leavings(std::string_view bytes) {
  const auto [rows, left] = split(bytes, "\n== \n");
  const std::filesystem::path folder = write_rows(rows);
  std::string_view rest = left;
  for (const char* name : {"2000000042.ring", "2000000042.notes.jsonl", "2000000042.stretch"}) {
    const auto [file, behind] = split(rest, "\n== \n");
    put(std::string("record/probe/") + name, file);
    rest = behind;
  }
  observe::recover(folder);
  diagnose_record(folder);
}

}  // namespace

const Target& leavings() {
  static const Target kTarget = {"leavings", run_leavings};
  return kTarget;
}

}  // namespace unidle::fuzz::targets
