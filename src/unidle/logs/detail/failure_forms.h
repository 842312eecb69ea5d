// The fixed forms in which kernels, schedulers, shells, launchers and runtimes tell how a process ended.
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "unidle/logs/failure_line.h"

namespace unidle::logs::detail {

/// The numbers of a form, by the signs that stand for them.
struct FormNumbers {
  std::optional<int> rank;        // %r
  std::optional<int> exit;        // %x: an exit code, or below 0 the number of a signal, as Python has it
  std::optional<int> signal;      // %s
  std::optional<double> time_ms;  // %t
  std::optional<int> count;       // %c: how many; 0 is no failure
};

struct Form {
  std::string_view shape;  // "*" stands for anything, " " for blanks, "%n" for a number that tells nothing
  Speaker speaker;
  Lack lack = Lack::kNone;
  Blame blame = Blame::kOwn;
  int signal = 0;
  bool hint = false;
};

/// The first form that all of `text` has; nullptr where it has none.
const Form* form_of(std::string_view text, FormNumbers& numbers);

/// For tests.
bool has_shape(std::string_view text, std::string_view shape, FormNumbers& numbers);

}  // namespace unidle::logs::detail
