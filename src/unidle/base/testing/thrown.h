#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <optional>

#include "unidle/base/error.h"

namespace unidle::testing {

/// The Error that `action` throws; the test fails if it throws none.
inline std::optional<Error> thrown_by(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "nothing was thrown";
  return std::nullopt;
}

/// Its code and, if requested, its subject.
inline ErrorCode code_of(const std::function<void()>& action, std::string* subject = nullptr) {
  const auto error = thrown_by(action);
  if (error && subject != nullptr) {
    *subject = error->subject();
  }
  return error ? error->code() : ErrorCode::kInternal;
}

}  // namespace unidle::testing
