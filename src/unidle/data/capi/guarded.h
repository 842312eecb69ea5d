// Error handling of the C ABI: no exception leaves it, and each thread keeps the error of its last failed call.
#pragma once

#include <exception>
#include <new>
#include <string>
#include <string_view>

#include "unidle/base/error.h"
#include "unidle/data/capi/unidle_data.h"

namespace unidle::capi {

struct Failure {
  int code = UNIDLE_DATA_OK;
  std::string text;
};

/// Of the calling thread.
inline Failure& last_failure() {
  thread_local Failure failure;
  return failure;
}

inline int code_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::kUsage: return UNIDLE_DATA_USAGE;
    case ErrorCode::kInput:
    case ErrorCode::kCorrupt: return UNIDLE_DATA_INPUT;
    case ErrorCode::kIo: return UNIDLE_DATA_IO;
    case ErrorCode::kOutOfMemory: return UNIDLE_DATA_MEMORY;
    default: return UNIDLE_DATA_INTERNAL;
  }
}

inline void fail(int code, std::string_view text) noexcept {
  try {
    last_failure() = {code, std::string(text)};
  } catch (...) {
    last_failure() = {code, {}};
  }
}

/// Returns the result of `call`, or `otherwise` and keeps the failure for unidle_data_error().
template <typename Result, typename Call>
Result guarded(Result otherwise, const Call& call) noexcept {
  try {
    return call();
  } catch (const Error& error) {
    fail(code_of(error.code()), error.what());
  } catch (const std::bad_alloc&) {
    fail(UNIDLE_DATA_MEMORY, "memory ran out");
  } catch (const std::exception& error) {
    fail(UNIDLE_DATA_INTERNAL, error.what());
  } catch (...) {
    fail(UNIDLE_DATA_INTERNAL, "unknown failure");
  }
  return otherwise;
}

}  // namespace unidle::capi
