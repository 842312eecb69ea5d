// The fixed forms in which kernels, schedulers, shells, launchers and runtimes report how a process ended.
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "unidle/logs/failure_line.h"

namespace unidle::logs::detail {

/// The numbers in a form, by their placeholders.
struct FormNumbers {
  std::optional<int> rank;        // %r
  std::optional<int> exit;        // %x: an exit code, or a negative signal number as in Python
  std::optional<int> signal;      // %s
  std::optional<double> time_ms;  // %t
  std::optional<int> count;       // %c: a count; 0 means no failure
};

struct Form {
  std::string_view shape;  // "*" matches anything, " " blanks, "%n" a number without meaning
  Speaker speaker;
  Lack lack = Lack::kNone;
  Blame blame = Blame::kOwn;
  int signal = 0;
  bool hint = false;
};

/// The first form that matches all of `text`; nullptr if there is none.
const Form* form_of(std::string_view text, FormNumbers& numbers);

/// For tests.
bool has_shape(std::string_view text, std::string_view shape, FormNumbers& numbers);

}  // namespace unidle::logs::detail
