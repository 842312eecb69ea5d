// The live view as lines of styled text, without a terminal so that it can be tested.
#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "unidle/language/language.h"
#include "unidle/monitor/snapshot.h"

namespace unidle::monitor {

enum class Style { kPlain, kBold, kDim, kGood, kMiddling, kBad };

struct Span {
  std::string text;  // UTF-8, no control characters
  Style style = Style::kPlain;
};
using ScreenLine = std::vector<Span>;

enum class SortBy { kCpu, kMemory, kPid, kRole };
std::string_view to_string(SortBy sort);
SortBy next(SortBy sort);

/// The state that keys change.
struct ViewState {
  bool paused = false;
  bool help = false;
  SortBy sort = SortBy::kCpu;
  bool unicode = true;  // block characters in bars and histories, otherwise ASCII
  Language language = Language::kEnglish;
};

/// The most recent values of each bar, newest last.
class Histories {
 public:
  void add(const Snapshot& snapshot);
  const std::deque<double>& of(const std::string& key) const;

 private:
  void push(const std::string& key, const std::optional<double>& value);
  std::map<std::string, std::deque<double>> values_;
};

/// Returns at most `rows` lines of at most `columns` columns; works at any size.
std::vector<ScreenLine> layout(const Snapshot& snapshot, const Histories& histories, const ViewState& state, int rows,
                               int columns);

}  // namespace unidle::monitor
