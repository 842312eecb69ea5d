#include "unidle/base/standard_streams.h"

#include <fcntl.h>
#include <unistd.h>

#include <initializer_list>

namespace unidle {

void open_missing_standard_streams() {
  for (const int stream : {0, 1, 2}) {
    if (::fcntl(stream, F_GETFD) < 0) {
      [[maybe_unused]] const int lowest_free = ::open("/dev/null", O_RDWR | O_CLOEXEC);  // this stream's descriptor
    }
  }
}

// Inherited descriptors are not close-on-exec; unidle's own are.
bool is_given_stream(int stream) {
  const int flags = ::fcntl(stream, F_GETFD);
  return flags >= 0 && (flags & FD_CLOEXEC) == 0;
}

}  // namespace unidle
