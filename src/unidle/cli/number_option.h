// Options whose value is a number. CLI11's own check names the largest double where a value is no number.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "unidle/base/numbers.h"

namespace unidle::cli {

/// Takes numbers above zero.
inline CLI::Validator positive_number() {
  return {[](const std::string& given) {
            return parse_number<double>(given).value_or(0) > 0 ? "" : "'" + given + "' is not a number above 0";
          },
          "POSITIVE"};
}

/// Takes zero and numbers above it.
inline CLI::Validator number_from_zero() {
  return {[](const std::string& given) {
            return parse_number<double>(given).value_or(-1) >= 0 ? "" : "'" + given + "' is not 0 or a positive number";
          },
          "NONNEGATIVE"};
}

}  // namespace unidle::cli
