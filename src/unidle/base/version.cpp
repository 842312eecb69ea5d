#include "unidle/base/version.h"

namespace unidle {

const char* const kVersion = UNIDLE_VERSION;

}  // namespace unidle
