// The marks of short steps that a process had made and not yet told of.
#include "fuzz.h"
#include "unidle/probe/stretch_reader.h"

namespace unidle::fuzz::targets {

const Target& stretch() {
  static const Target kTarget = {"stretch", [](std::string_view bytes) {
                                   const auto read = probe::read_stretch(put("7.stretch", bytes));
                                   require(!read || read->steps.size() <= bytes.size());
                                 }};
  return kTarget;
}

}  // namespace unidle::fuzz::targets
