#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <optional>

#include "unidle/base/error.h"

namespace unidle::testing {

/// What `action` throws of our family; that it throws nothing fails the test.
inline std::optional<Error> thrown_by(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "nothing was thrown";
  return std::nullopt;
}

/// Its code, and its subject where that is asked for.
inline ErrorCode code_of(const std::function<void()>& action, std::string* subject = nullptr) {
  const auto error = thrown_by(action);
  if (error && subject != nullptr) {
    *subject = error->subject();
  }
  return error ? error->code() : ErrorCode::kInternal;
}

}  // namespace unidle::testing
