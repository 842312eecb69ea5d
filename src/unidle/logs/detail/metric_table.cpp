#include "unidle/logs/detail/metric_table.h"

#include <algorithm>
#include <array>

#include "unidle/base/characters.h"
#include "unidle/base/substrings.h"
#include "unidle/logs/detail/numbers.h"

namespace unidle::logs::detail {

namespace {

constexpr std::size_t kLongestName = 64;

/// Calls `use(column, field)` for each field, without blanks and quotes around it. Returns the number of columns.
template <typename Use>
std::size_t for_each_field(std::string_view line, char separator, Use use) {
  std::size_t column = 0;
  for (;; ++column) {
    const std::size_t end = line.find(separator);
    std::string_view field = trimmed(line.substr(0, end));
    if (field.size() >= 2 && field.front() == '"' && field.back() == '"') {
      field = trimmed(field.substr(1, field.size() - 2));
    }
    use(column, field);
    if (end == std::string_view::npos) {
      return column + 1;
    }
    line.remove_prefix(end + 1);
  }
}

bool is_count(std::string_view name) {
  static constexpr std::array<std::string_view, 7> kNames = {"epoch",       "step",  "iteration", "iter",
                                                             "global_step", "batch", "episode"};
  return std::ranges::find(kNames, name) != kNames.end();
}

bool is_metric(std::string_view name) {
  static constexpr std::array<std::string_view, 4> kParts = {"loss", "accuracy", "auc", "acc"};
  return contains_any(name, kParts);
}

/// "val_loss", "Training Loss"; not a part of a sentence.
bool is_column_name(std::string_view field) {
  constexpr auto kMostBlanks = 2;
  return field.size() <= kLongestName && std::ranges::any_of(field, is_letter) &&
         std::ranges::count(field, ' ') <= kMostBlanks && field.find_first_of("=:") == std::string_view::npos;
}

/// A number, or "nan" or "inf".
bool is_reading_or_nan(std::string_view field) {
  const std::string text = lower(field);
  return whole_number(field) || text == "nan" || text == "inf" || text == "-inf";
}

}  // namespace

void MetricTable::read_header(std::string_view line) {
  static constexpr std::array<char, 3> kSeparators = {',', '\t', ';'};
  const auto used =
      std::ranges::find_if(kSeparators, [&](char one) { return line.find(one) != std::string_view::npos; });
  if (used == kSeparators.end()) {
    return;
  }
  separator_ = *used;
  bool names = true;
  bool loss = false;
  for_each_field(line, separator_, [&](std::size_t, std::string_view field) {
    names = names && (field.empty() || is_column_name(field));
    const std::string name = lower(field);
    loss = loss || name.find("loss") != std::string::npos;
    names_.push_back(is_count(name) || is_metric(name) ? name : "");
  });
  if (!names || !loss) {
    names_.clear();
  }
}

std::string_view MetricTable::words(std::string_view line) {
  if (!begun_ && !trimmed(line).empty()) {
    begun_ = true;
    read_header(line);
    return names_.empty() ? line : std::string_view();
  }
  if (names_.empty()) {
    return line;
  }
  text_.clear();
  bool values = true;
  const std::size_t columns = for_each_field(line, separator_, [&](std::size_t column, std::string_view field) {
    const bool used = column < names_.size() && !names_[column].empty() && !field.empty();
    const bool trains = used && (names_[column] == "loss" || names_[column].find("train") != std::string::npos);
    if (used && (trains || lower(field) != "nan")) {  // nan means that nothing was measured
      values = values && is_reading_or_nan(field);
      text_.append(text_.empty() ? "" : " ").append(names_[column]).append("=").append(field);
    }
  });
  return columns == names_.size() && values ? std::string_view(text_) : line;
}

}  // namespace unidle::logs::detail
