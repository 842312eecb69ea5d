// A record whose rows may say anything: the diagnosis.
#include "fuzz.h"
#include "scratch_record.h"

namespace unidle::fuzz::targets {

const Target& record_rows() {
  static const Target kTarget = {"record_rows", [](std::string_view bytes) { diagnose_record(write_rows(bytes)); }};
  return kTarget;
}

}  // namespace unidle::fuzz::targets
