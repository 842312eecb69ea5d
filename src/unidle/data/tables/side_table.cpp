#include "unidle/data/tables/side_table.h"

#include "unidle/base/error.h"
#include "unidle/data/tables/chunks.h"
#include "unidle/data/tables/row_parser.h"

namespace unidle::data::tables {

SideTable::SideTable(const CsvLayout& layout, const JoinPlan& plan, const TableSplit& split)
    : plan_(plan), whole_(plan.rows.width(), true) {
  const TableSplit none;
  RowParser parser(layout, plan.rows, plan.splits ? split : none, keys_);
  Chunks chunks(layout);
  Chunk chunk;
  while (chunks.next(chunk)) {
    try {
      parser.parse(chunk);
    } catch (const RowProblem& problem) {
      throw Error(ErrorCode::kInput, chunks.place(chunk.part, problem.offset), problem.what);
    }
    values_.insert(values_.end(), parser.values(), parser.values() + static_cast<std::size_t>(parser.rows()) * width());
    validation_.insert(validation_.end(), parser.validation().begin(), parser.validation().end());
    for (std::size_t own = 0; own < width(); ++own) {
      whole_[own] = whole_[own] && parser.facts()[own].whole;
    }
  }
  categories_ = parser.dictionaries();
}

std::optional<std::size_t> SideTable::find(std::string_view key) const {
  return key.empty() ? std::nullopt : std::optional<std::size_t>(keys_.find(key));
}

std::string_view SideTable::text(std::size_t row, std::size_t own) const {
  return categories_[own].texts()[static_cast<std::size_t>(value(row, own))];
}

}  // namespace unidle::data::tables
