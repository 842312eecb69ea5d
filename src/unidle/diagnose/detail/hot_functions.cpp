#include "unidle/diagnose/detail/hot_functions.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "unidle/base/units.h"
#include "unidle/diagnose/detail/finding.h"

namespace unidle::diagnose::detail {

std::vector<HotFunction> hot_functions(const Signals& signals, const std::function<bool(const HotLine&)>& counts) {
  struct Line {
    std::int64_t hits = 0;  // of all processes and callers
    std::int64_t of_caller = 0;
    std::string caller;  // the one with most of them in a process
  };
  std::map<std::pair<std::string, std::string>, std::map<std::string, Line>> lines;  // by function and file, by place
  std::int64_t total = 0;
  for (const HotLine& line : signals.hot) {
    if (!counts(line)) {
      continue;
    }
    Line& of_place = lines[{line.function, line.where.substr(0, line.where.rfind(':'))}][line.where];
    of_place.hits += line.hits;
    if (line.hits > of_place.of_caller) {
      of_place.of_caller = line.hits;
      of_place.caller = line.caller;
    }
    total += line.hits;
  }
  std::vector<HotFunction> functions;
  for (const auto& [name, of_function] : lines) {
    const auto& [where, hottest] =
        *std::ranges::max_element(of_function, {}, [](const auto& line) { return line.second.hits; });
    std::int64_t hits = 0;
    for (const auto& [place, line] : of_function) {
      hits += line.hits;
    }
    const auto share = [total](std::int64_t of) { return static_cast<double>(of) / static_cast<double>(total); };
    functions.push_back({name.first, where, share(hits), total, hottest.caller, share(hottest.hits)});
  }
  std::stable_sort(functions.begin(), functions.end(), [](const auto& a, const auto& b) { return a.share > b.share; });
  return functions;
}

std::optional<HotFunction> hot_function(const Signals& signals, const std::function<bool(const HotLine&)>& counts) {
  const std::vector<HotFunction> functions = hot_functions(signals, counts);
  return functions.empty() ? std::nullopt : std::optional(functions.front());
}

std::optional<HotFunction> hot_sample_function(const Signals& signals) {
  const bool by_workers = signals.loader && signals.loader->workers.value_or(0) > 0;  // the training thread only waits
  return hot_function(signals, [&](const HotLine& line) {
    return line.role == "worker" || (line.role == "train" && line.phase == "input" && !by_workers);
  });
}

void add_hot_function(const Context& context, const HotFunction& hot, Finding& finding) {
  finding.evidence.push_back(
      context.say("{} of that time is in {}, by {} stack samples", format_share(hot.share), hot.text(), hot.looks));
  if (!finding.where) {
    finding.where = place(hot.where);
  }
}

constexpr double kMostOfFunction = 0.7;  // of its time in one line, which then stands for the function

std::string HotFunction::text() const {
  if (where.empty()) {
    return function;
  }
  const bool many_lines = of_line > 0 && of_line < kMostOfFunction * share;
  if (function == "<module>") {
    return many_lines ? fmt::format("{} ({}: {})", where.substr(0, where.rfind(':')), where, format_share(of_line))
                      : where;
  }
  return many_lines ? fmt::format("{} ({}: {})", function, where, format_share(of_line))
                    : fmt::format("{} ({})", function, where);
}

std::optional<HotFunction> kept_within(const Signals& signals) {
  const auto hot = hot_sample_function(signals);
  if (!hot || !signals.loader) {
    return std::nullopt;
  }
  const auto& names = signals.loader->keepable;
  return std::find(names.begin(), names.end(), hot->function) == names.end() ? std::nullopt : hot;
}

std::optional<HotFunction> cacheable_within(const Signals& signals) {
  auto hot = kept_within(signals);
  if (!hot) {
    return std::nullopt;
  }
  const LoaderFacts& loader = *signals.loader;
  const auto name = std::find(loader.keepable.begin(), loader.keepable.end(), hot->function);
  const auto index = static_cast<std::size_t>(name - loader.keepable.begin());
  if (index >= loader.keepable_where.size() || loader.keepable_where[index].empty()) {
    return std::nullopt;
  }
  hot->where = loader.keepable_where[index];
  return hot;
}

}  // namespace unidle::diagnose::detail
