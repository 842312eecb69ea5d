#include "unidle/data/tables/plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "unidle/base/error.h"
#include "unidle/data/csv_rows.h"
#include "unidle/data/tables/chunks.h"
#include "unidle/data/tables/number.h"

namespace unidle::data::tables {

namespace {

bool among(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// Of each column, whether it holds numbers, by the first records of the first part.
std::vector<bool> columns_of_numbers(const CsvLayout& layout) {
  constexpr std::size_t kLookedAtBytes = std::size_t{1} << 20;
  std::vector<bool> numbers(layout.columns.size(), true);
  Chunks chunks(layout, kLookedAtBytes);
  Chunk chunk;
  if (!chunks.next(chunk)) {
    return numbers;
  }
  CsvRows rows(chunk.text, layout.parts[chunk.part].path, layout.delimiter, 2);
  while (rows.next()) {
    const std::size_t count = std::min(rows.fields().size(), numbers.size());
    for (std::size_t column = 0; column < count; ++column) {
      const std::string& cell = rows.fields()[column];
      numbers[column] = numbers[column] && (is_missing(cell) || cell_number(cell).has_value());
    }
  }
  return numbers;
}

class Planner {
 public:
  Planner(const TableOptions& options, const CsvLayout& layout) : options_(options), layout_(layout) {
    plan_.uses.resize(layout.columns.size());
  }

  TablePlan run() {
    if (options_.features) {
      for (const std::string& name : *options_.features) {
        add(name);
      }
    } else {
      add_all_numbers();
    }
    for (const std::string& name : options_.categorical) {
      if (plan_.uses[layout_.column(name)].place == ColumnUse::kNowhere && !among(options_.targets, name)) {
        add(name);
      }
    }
    plan_.features = plan_.names.size();
    for (const std::string& name : options_.targets) {
      add(name);
    }
    if (!options_.split.column.empty()) {
      plan_.uses[layout_.column(options_.split.column)].split = true;
    }
    if (plan_.features == 0) {
      throw Error(ErrorCode::kUsage, "table option features",
                  options_.features ? "expected at least one column, or no such option for all that hold numbers"
                                    : "expected at least one column; none holds numbers");
    }
    return std::move(plan_);
  }

 private:
  void add(const std::string& name) {
    ColumnUse& use = plan_.uses[layout_.column(name)];
    if (use.place != ColumnUse::kNowhere) {
      throw Error(ErrorCode::kUsage, "table column " + name, "is asked for twice");
    }
    use.place = plan_.names.size();
    use.category = among(options_.categorical, name);
    plan_.names.push_back(name);
    plan_.categories.push_back(use.category);
  }

  void add_all_numbers() {
    const std::vector<bool> numbers = columns_of_numbers(layout_);
    for (std::size_t column = 0; column < numbers.size(); ++column) {
      const std::string& name = layout_.columns[column];
      if (among(options_.targets, name) || among(options_.categorical, name) || name == options_.split.column) {
        continue;
      }
      if (numbers[column] && !name.empty()) {
        add(name);
      } else {
        plan_.left_out.push_back(name);
      }
    }
  }

  const TableOptions& options_;
  const CsvLayout& layout_;
  TablePlan plan_;
};

}  // namespace

TablePlan make_plan(const TableOptions& options, const CsvLayout& layout) { return Planner(options, layout).run(); }

}  // namespace unidle::data::tables
