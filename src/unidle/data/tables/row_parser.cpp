#include "unidle/data/tables/row_parser.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "unidle/base/printable.h"
#include "unidle/data/tables/column_statistics.h"
#include "unidle/data/tables/number.h"

namespace unidle::data::tables {

namespace {

std::string shown(std::string_view cell) {
  constexpr std::size_t kMost = 40;
  return printable_line(cell.substr(0, kMost)) + (cell.size() > kMost ? "..." : "");
}

}  // namespace

void ColumnFacts::add(const ColumnFacts& other) {
  missing += other.missing;
  whole = whole && other.whole;
  if (other.counted == 0) {
    return;
  }
  const auto ours = static_cast<double>(counted);
  const auto theirs = static_cast<double>(other.counted);
  const double distance = other.mean - mean;
  mean += distance * theirs / (ours + theirs);
  squares += other.squares + distance * distance * ours * theirs / (ours + theirs);
  counted += other.counted;
}

bool is_for_validation(const TableSplit& split, std::string_view text) {
  if (!split.values.empty()) {
    return std::find(split.values.begin(), split.values.end(), text) != split.values.end();
  }
  const std::uint64_t hash = XXH3_64bits_withSeed(text.data(), text.size(), split.seed);
  return static_cast<double>(hash >> 11) * 0x1p-53 < split.validation;
}

RowParser::RowParser(const CsvLayout& layout, const RowPlan& plan, const TableSplit& split,
                     std::span<const SideTable> sides)
    : layout_(layout),
      plan_(plan),
      split_(split),
      sides_(sides),
      splits_(split.validation > 0 || !split.values.empty()),
      points_(plan.numbers.decimal == '.'),
      numbers_missing_(!plan.numbers.missing_numbers.empty()),
      facts_(plan.width()),
      dictionaries_(plan.width()),
      matches_(sides.size()),
      unmatched_(sides.size()),
      sums_(plan.width()) {}

RowParser::RowParser(const CsvLayout& layout, const RowPlan& plan, const TableSplit& split, Dictionary& keys)
    : RowParser(layout, plan, split, std::span<const SideTable>()) {
  keys_ = &keys;
}

void RowParser::fail(const char* at, std::string what) const {
  throw RowProblem{chunk_->offset + static_cast<std::uint64_t>(at - chunk_->text.data()), std::move(what)};
}

void RowParser::parse(const Chunk& chunk) {
  chunk_ = &chunk;
  rows_ = 0;
  validation_.clear();
  std::fill(facts_.begin(), facts_.end(), ColumnFacts());
  std::fill(sums_.begin(), sums_.end(), Sums());
  std::fill(unmatched_.begin(), unmatched_.end(), 0);
  const char* at = chunk.text.data();
  const char* const end = at + chunk.text.size();
  while (at < end) {
    if (*at == '\n' || (*at == '\r' && at[1] == '\n')) {
      at += *at == '\n' ? 1 : 2;
      continue;
    }
    const std::size_t before = static_cast<std::size_t>(rows_) * plan_.width();
    if (values_.size() < before + plan_.width()) {
      values_.resize(std::max(before + plan_.width(), values_.size() * 2));
    }
    float* const row = values_.data() + before;
    const char* const begin = at;
    at = parse_record(begin, row);
    ++rows_;
    if (!sides_.empty()) {
      join(row);
    }
    if (splits_) {
      validation_.push_back(is_for_validation_by(begin, at) ? 1 : 0);
    }
    if (!splits_ || validation_.back() == 0) {
      count(row);
    }
    ++at;
  }
  finish_facts();
}

const char* RowParser::parse_record(const char* at, float* row) {
  const char* const record = at;
  const std::size_t columns = plan_.uses.size();
  for (std::size_t column = 0; column < columns; ++column) {
    const ColumnUse& use = plan_.uses[column];
    const PlainNumber number = use.number() ? plain_number(at) : PlainNumber();
    if (number.end != nullptr && (*number.end == layout_.delimiter || *number.end == '\n') &&
        (points_ || number.whole) && !numbers_missing_) {
      row[use.place] = static_cast<float>(number.value);
      facts_[use.place].whole &= number.whole;
      at = number.end;
    } else {
      at = other_cell(at, column, row);
    }
    if (column + 1 < columns) {
      if (*at != layout_.delimiter) {
        wrong_count(record);
      }
      ++at;
    }
  }
  if (*at != '\n') {
    wrong_count(record);
  }
  return at;
}

const char* RowParser::other_cell(const char* at, std::size_t column, float* row) {
  const ColumnUse& use = plan_.uses[column];
  const Cell cell = take_cell(at);
  if (use.split) {
    split_cell_ = cell.text;
  }
  if (use.key) {
    take_key(at, column, cell.text);
  }
  if (use.place == ColumnUse::kNowhere) {
    return cell.end;
  }
  ColumnFacts& facts = facts_[use.place];
  if (use.category) {
    const std::size_t before = dictionaries_[use.place].texts().size();
    const std::uint32_t number = dictionaries_[use.place].number_of(cell.text);
    if (number == before && !is_utf8(cell.text)) {
      fail(at, fmt::format("column {}: \"{}\" {}", layout_.columns[column], shown(cell.text), kNoUtf8));
    }
    if (number >= kMostCategories) {
      fail(at, fmt::format("column {}: has more than {} different texts", layout_.columns[column], kMostCategories));
    }
    facts.missing += cell.text.empty() ? 1 : 0;
    row[use.place] = static_cast<float>(number);
    return cell.end;
  }
  if (plan_.numbers.is_missing(cell.text)) {
    ++facts.missing;
    row[use.place] = std::numeric_limits<float>::quiet_NaN();
    return cell.end;
  }
  const std::optional<double> value = cell_number(cell.text, plan_.numbers.decimal);
  if (!value) {
    fail(at, fmt::format("column {}: expected a number, found \"{}\" (a column of texts, True and False among them, is "
                         "named in categorical, or left out by naming the others in features{})",
                         layout_.columns[column], shown(cell.text), advice_for(cell.text, plan_.numbers)));
  }
  if (plan_.numbers.is_missing(*value)) {
    ++facts.missing;
    row[use.place] = std::numeric_limits<float>::quiet_NaN();
    return cell.end;
  }
  facts.whole &= *value == std::floor(*value) && cell.text.find_first_of(".,eE") == std::string_view::npos;
  row[use.place] = static_cast<float>(*value);
  return cell.end;
}

RowParser::Cell RowParser::take_cell(const char* at) {
  if (*at == '"') {
    return take_quoted(at);
  }
  const char* end = at;
  while (*end != layout_.delimiter && *end != '\n') {
    ++end;
  }
  const bool carriage = *end == '\n' && end > at && end[-1] == '\r';
  return {{at, static_cast<std::size_t>(end - at) - (carriage ? 1 : 0)}, end};
}

RowParser::Cell RowParser::take_quoted(const char* at) {
  const char* const limit = chunk_->text.data() + chunk_->text.size();
  const char* from = at + 1;
  bool doubled = false;
  for (;;) {
    const auto* quote = static_cast<const char*>(std::memchr(from, '"', static_cast<std::size_t>(limit - from)));
    if (quote == nullptr) {
      fail(at, "a quote is not closed");
    }
    std::string_view text(from, static_cast<std::size_t>(quote - from));
    if (quote[1] == '"') {
      if (!doubled) {
        unquoted_.clear();
      }
      doubled = true;
      unquoted_.append(text).push_back('"');
      from = quote + 2;
      continue;
    }
    const char* end = quote + 1;
    end += *end == '\r' && end[1] == '\n' ? 1 : 0;
    if (*end != layout_.delimiter && *end != '\n') {
      fail(end, "text follows a closed quote");
    }
    if (doubled) {
      unquoted_.append(text);
      text = unquoted_;
    }
    return {text, end};
  }
}

void RowParser::wrong_count(const char* record) const {
  std::size_t count = 1;
  RowParser other(layout_, plan_, split_, sides_);
  other.chunk_ = chunk_;
  for (const char* at = record;; ++count) {
    at = other.take_cell(at).end;
    if (*at == '\n') {
      break;
    }
    ++at;
  }
  const std::string_view rest(record, static_cast<std::size_t>(chunk_->text.data() + chunk_->text.size() - record));
  fail(record, wrong_columns(layout_, count, rest.substr(0, rest.find('\n'))));
}

void RowParser::take_key(const char* at, std::size_t column, std::string_view text) {
  if (keys_ == nullptr) {
    for (std::size_t i = 0; i < sides_.size(); ++i) {
      if (sides_[i].key() == column) {
        matches_[i] = sides_[i].find(text);
      }
    }
    return;
  }
  if (text.empty()) {
    fail(at, fmt::format("column {}: expected the key of the row, found nothing", layout_.columns[column]));
  }
  const std::size_t before = keys_->size();
  if (keys_->number_of(text) != before) {
    fail(at, fmt::format("column {}: the key \"{}\" comes a second time; expected one row for each",
                         layout_.columns[column], shown(text)));
  }
}

/// Without a matching row, the cells of the side table count as empty.
void RowParser::join(float* row) {
  for (std::size_t i = 0; i < sides_.size(); ++i) {
    const SideTable& side = sides_[i];
    const std::optional<std::size_t> match = matches_[i];
    unmatched_[i] += match ? 0 : 1;
    for (std::size_t own = 0; own < side.width(); ++own) {
      const std::size_t place = side.place(own);
      ColumnFacts& facts = facts_[place];
      if (side.is_category(own)) {
        const std::string_view text = match ? side.text(*match, own) : std::string_view();
        row[place] = static_cast<float>(dictionaries_[place].number_of(text));
        facts.missing += text.empty() ? 1 : 0;
      } else {
        row[place] = match ? side.value(*match, own) : std::numeric_limits<float>::quiet_NaN();
        facts.missing += std::isnan(row[place]) ? 1 : 0;
        facts.whole &= side.is_whole(own);
      }
    }
  }
}

bool RowParser::is_for_validation_by(const char* begin, const char* end) const {
  for (std::size_t i = 0; i < sides_.size(); ++i) {
    if (sides_[i].splits()) {
      return matches_[i] ? sides_[i].is_for_validation(*matches_[i]) : is_for_validation(split_, {});
    }
  }
  if (!split_.column.empty()) {
    return is_for_validation(split_, split_cell_);
  }
  std::string_view text(begin, static_cast<std::size_t>(end - begin));
  if (text.ends_with('\r')) {
    text.remove_suffix(1);
  }
  return is_for_validation(split_, text);
}

void RowParser::count(const float* row) {
  for (std::size_t place = 0; place < sums_.size(); ++place) {
    Sums& sums = sums_[place];
    const auto value = static_cast<double>(row[place]);
    if (!std::isfinite(value)) {
      continue;
    }
    if (sums.count == 0) {
      sums.base = value;
    }
    const double distance = value - sums.base;
    sums.sum += distance;
    sums.squares += distance * distance;
    ++sums.count;
  }
}

void RowParser::finish_facts() {
  for (std::size_t place = 0; place < sums_.size(); ++place) {
    const Sums& sums = sums_[place];
    if (plan_.categories[place] || sums.count == 0) {
      continue;
    }
    const auto count = static_cast<double>(sums.count);
    facts_[place].counted = sums.count;
    facts_[place].mean = sums.base + sums.sum / count;
    facts_[place].squares = std::max(0.0, sums.squares - sums.sum * sums.sum / count);
  }
}

}  // namespace unidle::data::tables
