#include "unidle/logs/detail/smi_table.h"

#include "unidle/base/characters.h"
#include "unidle/logs/detail/numbers.h"

namespace unidle::logs::detail {

namespace {

/// The number before `unit` at `at`, searching backwards.
std::optional<double> number_before(std::string_view line, std::size_t at) {
  std::size_t begin = at;
  while (begin > 0 && (is_digit(line[begin - 1]) || line[begin - 1] == '.')) {
    --begin;
  }
  return begin == at ? std::nullopt : whole_number(line.substr(begin, at - begin));
}

/// "29W /  165W": the first and the second number with this unit.
void read_pair(std::string_view cell, std::string_view unit, double scale, std::optional<double>& first,
               std::optional<double>& second) {
  const std::size_t one = cell.find(unit);
  if (one == std::string_view::npos) {
    return;
  }
  const std::size_t two = cell.find(unit, one + unit.size());
  const auto scaled = [&](std::size_t at) {
    const auto value = number_before(cell, at);
    return value ? std::optional(*value * scale) : std::nullopt;
  };
  first = scaled(one);
  second = two == std::string_view::npos ? std::nullopt : scaled(two);
}

}  // namespace

void SmiTable::name_row(std::string_view line) {
  // "|", blanks, an index, two blanks, a name.
  std::string_view rest = trimmed(line);
  if (rest.size() < 30 || rest.front() != '|') {
    return;
  }
  rest = trimmed(rest.substr(1));
  const std::string_view all = rest;
  const auto index = take_digits(rest);
  if (!index || *index > 1023 || rest.empty() || rest.front() != ' ') {
    return;
  }
  const std::string_view id = all.substr(0, all.size() - rest.size());
  rest = trimmed(rest);
  const std::size_t gap = rest.find("  ");
  const std::size_t bus = line.find(":00.");
  if (gap == std::string_view::npos || bus == std::string_view::npos) {
    return;
  }
  id_ = id;
  name_ = rest.substr(0, gap);
}

void SmiTable::use_row(std::string_view line, std::optional<std::int64_t> t_ns, GpuLog& log) {
  if (id_.empty()) {
    return;
  }
  GpuSample sample;
  sample.id = id_;
  sample.name = name_;
  sample.t_ns = t_ns;
  std::string_view rest = trimmed(line);
  if (rest.empty() || rest.front() != '|') {
    return;
  }
  rest.remove_prefix(1);
  for (int cell_number = 0; cell_number < 3; ++cell_number) {
    const std::size_t bar = rest.find('|');
    const std::string_view cell = rest.substr(0, bar);
    if (cell_number == 0) {
      read_pair(cell, "W", 1, sample.power_w, sample.power_limit_w);
    } else if (cell_number == 1) {
      read_pair(cell, "MiB", 1048576, sample.memory_used, sample.memory_total);
    } else {
      std::optional<double> unused;
      read_pair(cell, "%", 0.01, sample.utilisation, unused);
    }
    if (bar == std::string_view::npos) {
      break;
    }
    rest.remove_prefix(bar + 1);
  }
  if (sample.memory_total && sample.utilisation.value_or(0) <= 1.0001) {
    log.add(sample);
  }
  id_.clear();
}

}  // namespace unidle::logs::detail
