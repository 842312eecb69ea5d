// The functions of the program in which its stack samples fall.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "unidle/diagnose/context.h"
#include "unidle/diagnose/diagnosis.h"

namespace unidle::diagnose::detail {

/// A function in which stack samples fall, with its share of them.
struct HotFunction {
  std::string function;
  std::string where;  // its hottest line; empty for a package's function
  double share = 0;
  std::int64_t looks = 0;  // number of stack samples that the share is of
  std::string caller;      // the program's function that called it, with its line; may be empty
  double of_line = 0;      // share of the hottest line alone

  /// "function (file:line)", or "function (file:line: 40 %)" if its other lines take much as well; "file:line" for code
  /// outside functions.
  std::string text() const;
};

/// All of them, the most frequent first, over lines for which `counts` is true.
std::vector<HotFunction> hot_functions(const Signals& signals, const std::function<bool(const HotLine&)>& counts);
/// The first of them, over such lines or over sample work.
std::optional<HotFunction> hot_function(const Signals& signals, const std::function<bool(const HotLine&)>& counts);
std::optional<HotFunction> hot_sample_function(const Signals& signals);

/// Fewer stack samples name nothing: 20 are of about a second.
inline constexpr std::int64_t kEnoughStackSamples = 20;
/// Of several functions, only those with this share of the stack samples are named.
inline constexpr double kLeastShareOfStackSamples = 0.25;

/// Adds how many stack samples fell in the function, and its line where the finding has no place yet.
void add_hot_function(const Context& context, const HotFunction& hot, Finding& finding);

/// The function that makes samples, where its results could be kept although the samples differ.
std::optional<HotFunction> kept_within(const Signals& signals);

/// The same, of the part whose results unidle.cached could keep across runs; `where` is the line of its definition,
/// where the decorator goes.
std::optional<HotFunction> cacheable_within(const Signals& signals);

}  // namespace unidle::diagnose::detail
