#include "unidle/tune/trials/memory_watch.h"

#include <gtest/gtest.h>

#include <stdlib.h>
#include <chrono>
#include <condition_variable>
#include <mutex>

#include "unidle/base/files.h"

namespace unidle::tune {
namespace {

TEST(MemoryWatch, EndsATrialThatLeavesTooLittle) {
  const TemporaryFolder root;
  make_folders(root.path() / "proc");
  const auto available = [&](const std::string& kib) {
    write_file_atomic(root.path() / "proc/meminfo", "MemTotal: 8388608 kB\nMemAvailable: " + kib + " kB\n");
  };
  available("4194304");
  EXPECT_EQ(memory_left(root.path()), 4ULL << 30);
  EXPECT_EQ(memory_to_keep(root.path()), (8ULL << 30) / 20);
  ::setenv("UNIDLE_HOST_ROOT", root.path().c_str(), 1);
  std::stop_source ending;
  {
    const MemoryWatch watch(ending);
    available("1024");
    std::mutex mutex;
    std::condition_variable_any wake;
    std::unique_lock lock(mutex);
    wake.wait_for(lock, ending.get_token(), std::chrono::seconds(30), [&] { return ending.stop_requested(); });
    EXPECT_TRUE(watch.tripped());
  }
  ::unsetenv("UNIDLE_HOST_ROOT");
  EXPECT_TRUE(ending.stop_requested());
}

}  // namespace
}  // namespace unidle::tune
