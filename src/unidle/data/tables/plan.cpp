#include "unidle/data/tables/plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "unidle/base/error.h"
#include "unidle/data/csv_rows.h"
#include "unidle/data/tables/chunks.h"
#include "unidle/data/tables/column_statistics.h"
#include "unidle/data/tables/number.h"

namespace unidle::data::tables {

namespace {

bool among(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

void add_cells(const CsvLayout& layout, const Chunk& chunk, std::vector<ColumnStatistics>& looks) {
  CsvRows rows(chunk.text, layout.parts[chunk.part].path, layout.delimiter, 2);
  while (rows.next()) {
    const std::size_t count = std::min(rows.fields().size(), looks.size());
    for (std::size_t column = 0; column < count; ++column) {
      looks[column].add(rows.fields()[column]);
    }
  }
}

/// Inspects the columns in the first records, and in more until each column has a value. A few texts among many numbers
/// are faults of the file: such a column is used, and its first text is an error.
std::vector<ColumnStatistics> looks_of(const CsvLayout& layout, const NumberFormat& format) {
  constexpr std::size_t kLookedAtBytes = std::size_t{1} << 20;
  std::vector<ColumnStatistics> looks(layout.columns.size(), ColumnStatistics(format));
  Chunks chunks(layout, kLookedAtBytes);
  Chunk chunk;
  do {
    if (!chunks.next(chunk)) {
      break;
    }
    try {
      add_cells(layout, chunk, looks);
    } catch (const Error&) {
      if (chunk.number == 0) {
        throw;
      }
      break;  // reported with its line when the rows are read
    }
  } while (std::any_of(looks.begin(), looks.end(), [](const ColumnStatistics& look) { return look.is_blank(); }));
  return looks;
}

/// A column of the table's own files (table 0) or of a side table (1 and up).
struct FoundColumn {
  std::size_t table;
  std::size_t column;
};

class Planner {
 public:
  Planner(const TableOptions& options, const CsvLayout& layout, std::span<const CsvLayout> sides) : options_(options) {
    layouts_.push_back(&layout);
    plan_.rows.numbers = NumberFormat(options.missing, options.decimal);
    plan_.rows.uses.resize(layout.columns.size());
    for (std::size_t i = 0; i < sides.size(); ++i) {
      const std::string& key = options.joins[i].key;
      layouts_.push_back(&sides[i]);
      JoinPlan join;
      join.rows.numbers = plan_.rows.numbers;
      join.key = layout.column(key);
      plan_.rows.uses[join.key].key = true;
      join.rows.uses.resize(sides[i].columns.size());
      join.rows.uses[sides[i].column(key)].key = true;
      plan_.joins.push_back(std::move(join));
    }
    for (const CsvLayout* one : layouts_) {
      places_.emplace_back();
      for (std::size_t column = 0; column < one->columns.size(); ++column) {
        places_.back().emplace(one->columns[column], column);
      }
    }
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
      if (!among(plan_.names, name) && !among(options_.targets, name)) {
        add(name);
      }
    }
    plan_.features = plan_.names.size();
    for (const std::string& name : options_.targets) {
      add(name);
    }
    if (!options_.split.column.empty()) {
      const FoundColumn found = find(options_.split.column);
      use_of(found).split = true;
      if (found.table > 0) {
        plan_.joins[found.table - 1].splits = true;
      }
    }
    if (plan_.features == 0) {
      throw Error(ErrorCode::kUsage, "table option features",
                  options_.features ? "expected at least one column, or no such option for all that hold numbers"
                                    : "expected at least one column; none holds numbers" + left_out_text());
    }
    return std::move(plan_);
  }

 private:
  ColumnUse& use_of(FoundColumn found) {
    return (found.table == 0 ? plan_.rows : plan_.joins[found.table - 1].rows).uses[found.column];
  }

  /// Finds the table's own column, or that of the side table that has it.
  FoundColumn find(const std::string& name) const {
    std::optional<FoundColumn> found;
    for (std::size_t table = 0; table < layouts_.size(); ++table) {
      const CsvLayout& layout = *layouts_[table];
      const auto place = places_[table].find(name);
      if (place == places_[table].end() || (table > 0 && name == options_.joins[table - 1].key)) {
        continue;
      }
      if (found) {
        throw Error(ErrorCode::kInput, layout.parts.front().head(),
                    fmt::format("has a column {}, and so has {}", name, layouts_[found->table]->parts.front().path),
                    "give one of them another name");
      }
      found = FoundColumn{table, place->second};
    }
    if (!found) {
      fail_missing(name);
    }
    return *found;
  }

  [[noreturn]] void fail_missing(const std::string& name) const {
    std::string others;
    for (std::size_t table = 1; table < layouts_.size(); ++table) {
      const CsvLayout& side = *layouts_[table];
      others += fmt::format("; in {}: {}", side.parts.front().path, side.columns_text());
    }
    throw Error(ErrorCode::kInput, layouts_.front()->parts.front().head(),
                fmt::format("has no column {}; there are: {}{}", name, layouts_.front()->columns_text(), others));
  }

  void add(const std::string& name) {
    if (!asked_for_.insert(name).second) {
      throw Error(ErrorCode::kUsage, "table column " + name, "is asked for twice");
    }
    const FoundColumn found = find(name);
    const std::size_t place = plan_.names.size();
    ColumnUse& use = use_of(found);
    use.place = place;
    use.category = among(options_.categorical, name);
    if (found.table > 0) {
      JoinPlan& join = plan_.joins[found.table - 1];
      use.place = join.places.size();
      join.places.push_back(place);
      join.rows.categories.push_back(use.category);
    }
    plan_.names.push_back(name);
    plan_.rows.categories.push_back(use.category);
  }

  std::string left_out_text() const {
    constexpr std::size_t kMostTold = 5;
    std::string text;
    for (const LeftOutColumn& one : std::span(plan_.left_out).first(std::min(kMostTold, plan_.left_out.size()))) {
      text += fmt::format("; {}: {}", one.name, one.why);
    }
    return text;
  }

  void add_all_numbers() {
    for (std::size_t table = 0; table < layouts_.size(); ++table) {
      const CsvLayout& layout = *layouts_[table];
      const std::vector<ColumnStatistics> looks = looks_of(layout, plan_.rows.numbers);
      for (std::size_t column = 0; column < looks.size(); ++column) {
        const std::string& name = layout.columns[column];
        if (use_of({table, column}).key || among(options_.targets, name) || among(options_.categorical, name) ||
            name == options_.split.column) {
          continue;
        }
        if (layout.unnamed[column]) {
          plan_.left_out.push_back({name, "has no name; " + looks[column].what(), false});
        } else if (looks[column].is_blank() ? options_.fill != TableFill::kNan : looks[column].is_of_numbers()) {
          add(name);
        } else {
          const bool doubtful = looks[column].is_blank() || looks[column].is_mostly_numbers();
          plan_.left_out.push_back({name, looks[column].what(), doubtful});
        }
      }
      for (const TextOfFile::LeftOut& one : layout.left_out) {
        plan_.left_out.push_back({one.column, one.why, false});
      }
    }
  }

  const TableOptions& options_;
  std::vector<const CsvLayout*> layouts_;                                  // the table's own first
  std::vector<std::unordered_map<std::string_view, std::size_t>> places_;  // of the columns, by table and name
  std::unordered_set<std::string> asked_for_;
  TablePlan plan_;
};

}  // namespace

TablePlan make_plan(const TableOptions& options, const CsvLayout& layout, std::span<const CsvLayout> sides) {
  return Planner(options, layout, sides).run();
}

}  // namespace unidle::data::tables
