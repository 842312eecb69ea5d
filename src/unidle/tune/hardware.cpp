#include "unidle/tune/hardware.h"

#include <sched.h>
#include <unistd.h>

namespace unidle::tune {

Hardware this_machine() {
  Hardware hardware;
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof set, &set) == 0) {
    hardware.cpus = CPU_COUNT(&set);
  }
  hardware.memory_bytes =
      static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(::sysconf(_SC_PAGE_SIZE));
  return hardware;
}

}  // namespace unidle::tune
