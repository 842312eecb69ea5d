#include "unidle/logs/text_log.h"
#include "target.h"
#include "unidle/logs/sniff.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return unidle::fuzz::one_input(data, size, [&](unidle::logs::Source& source) {
    const unidle::logs::TextLog log = unidle::logs::read_text_log(source);
    const auto& phases = log.phases;
    if (phases.startup_s < 0 || phases.train_s < 0 || phases.validate_s < 0 || phases.checkpoint_s < 0) {
      std::abort();
    }
    if (log.first_ns && *log.first_ns > *log.last_ns) {
      std::abort();
    }
    unidle::logs::sniff_bytes({reinterpret_cast<const char*>(data), size}, "input");
  });
}
