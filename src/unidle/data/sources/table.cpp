#include "unidle/data/sources/table.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>

#include "unidle/base/error.h"
#include "unidle/base/json.h"
#include "unidle/data/source_kind.h"
#include "unidle/data/sources/arrays.h"
#include "unidle/data/tables/build.h"

namespace unidle::data {

namespace {

void check_table_options(const TableOptions& options) {
  const auto fail = [](std::string_view option, std::string expected) {
    throw Error(ErrorCode::kUsage, fmt::format("table option {}", option), std::move(expected));
  };
  const TableSplit& split = options.split;
  if (!(split.validation >= 0 && split.validation < 1)) {
    fail("validation", fmt::format("expected a share from 0 to below 1, found {}", split.validation));
  }
  if (!split.values.empty() && split.column.empty()) {
    fail("split_values", "expected split_column too");
  }
  const bool splits = split.validation > 0 || !split.values.empty();
  if (!split.column.empty() && !splits) {
    fail("split_column", "expected validation or split_values too");
  }
  if (options.part != TablePart::kAll && !splits) {
    fail("part", "expected validation or split_values too: all rows are for training otherwise");
  }
  for (const TableJoin& join : options.joins) {
    if (join.key.empty() || join.paths.empty()) {
      fail("joins", "expected the name of a key and the files of each side table");
    }
  }
  if (options.decimal != '.' && options.decimal != ',') {
    fail("decimal", fmt::format("expected \".\" or \",\", found {:?}", options.decimal));
  }
  if (options.delimiter == '"' || options.delimiter == '\n' || options.delimiter == '\r') {
    fail("delimiter", "expected a byte that is no quote and ends no line");
  }
  if (options.fill == TableFill::kValue && !std::isfinite(options.fill_value)) {
    fail("fill", "expected a finite number");
  }
  if (options.fill == TableFill::kValue && !std::isfinite(static_cast<float>(options.fill_value))) {
    fail("fill", fmt::format("expected a number that float32 holds (up to 3.4e38), found {:g}", options.fill_value));
  }
}

}  // namespace

TableSource::TableSource(const TableOptions& options, Disk& disk) {
  check_table_options(options);
  file_ = tables::open_or_build(options, disk, built_);
  features_ = static_cast<std::int64_t>(file_->facts().features);
  const auto width = static_cast<std::int64_t>(file_->width());
  fields_.push_back({"features", DType::kF32, {features_}});
  if (width > features_) {
    fields_.push_back({"targets", DType::kF32, {width - features_}});
  }
  grain_ = rows_at_once(file_->width() * sizeof(float));
  choose_rows(options.part);
  prepare_values(options);
}

TableSource::~TableSource() = default;

void TableSource::choose_rows(TablePart part) {
  chosen_ = part != TablePart::kAll;
  if (!chosen_) {
    return;
  }
  const std::uint8_t wanted = part == TablePart::kValidation ? 1 : 0;
  const std::span<const std::uint8_t> flags = file_->validation();
  for (std::size_t row = 0; row < flags.size(); ++row) {
    if (flags[row] == wanted) {
      rows_.push_back(static_cast<std::int64_t>(row));
    }
  }
}

/// Rows are float32, whose relative precision is 2^-24: a column that varies by less than 2^-17 of its mean loses
/// almost all information when the mean is subtracted.
void check_is_told_apart(const TableColumn& column) {
  constexpr double kLeast = 0x1p-17;
  constexpr double kExact = 0x1p24;  // below this, equal whole numbers are exactly equal
  const bool same = column.deviation == 0 && std::abs(column.mean) < kExact;
  if (!same && column.deviation < std::abs(column.mean) * kLeast) {
    throw Error(
        ErrorCode::kInput, fmt::format("table column {}", column.name),
        fmt::format("varies by {:g} around {:g}, which float32 hardly tells apart", column.deviation, column.mean),
        "subtract an offset in the files, or leave it out of features");
  }
}

void TableSource::prepare_values(const TableOptions& options) {
  const std::span<const TableColumn> all = columns();
  for (std::size_t i = 0; i < all.size(); ++i) {
    const bool category = all[i].type == "text";
    float fill = std::numeric_limits<float>::quiet_NaN();
    if (options.fill != TableFill::kNan && !category) {
      fill = static_cast<float>(options.fill == TableFill::kMean ? all[i].mean : options.fill_value);
    }
    const bool moved = options.standardize && !category && static_cast<std::int64_t>(i) < features_;
    if (moved) {
      check_is_told_apart(all[i]);
    }
    fill_.push_back(fill);
    mean_.push_back(moved ? all[i].mean : 0);
    // A constant column becomes 0, without dividing by zero.
    scale_.push_back(moved && all[i].deviation > 0 ? static_cast<float>(1 / all[i].deviation) : 1);
  }
  unchanged_ = options.fill == TableFill::kNan && !options.standardize;
}

std::int64_t TableSource::items() const { return chosen_ ? static_cast<std::int64_t>(rows_.size()) : file_->rows(); }

std::span<const TableColumn> TableSource::columns() const { return file_->facts().columns; }

void TableSource::put(const float* from, std::byte* to, std::size_t first, std::size_t count) const {
  if (unchanged_) {
    std::memcpy(to, from + first, count * sizeof(float));
    return;
  }
  auto* values = reinterpret_cast<float*>(to);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t column = first + i;
    const float value = std::isnan(from[column]) ? fill_[column] : from[column];
    values[i] = static_cast<float>(value - mean_[column]) * scale_[column];
  }
}

std::uint64_t TableSource::read(const ItemRequest& request, std::span<const Places> samples) const {
  const float* from = file_->row(row_of(request.item));
  const auto features = static_cast<std::size_t>(features_);
  put(from, samples[0][0].data(), 0, features);
  if (fields_.size() > 1) {
    put(from, samples[0][1].data(), features, file_->width() - features);
  }
  return file_->width() * sizeof(float);
}

std::uint64_t TableSource::gather(std::span<const ItemRequest> requests, std::span<const Rows> fields) const {
  constexpr std::size_t kAhead = 8;  // rows being prefetched from memory while one is copied
  const auto features = static_cast<std::size_t>(features_);
  const std::size_t targets = file_->width() - features;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    if (i + kAhead < requests.size()) {
      __builtin_prefetch(file_->place(row_of(requests[i + kAhead].item)));
    }
    const float* from = file_->row(row_of(requests[i].item));
    put(from, fields[0].at(i).data(), 0, features);
    if (targets > 0) {
      put(from, fields[1].at(i).data(), features, targets);
    }
  }
  return requests.size() * file_->width() * sizeof(float);
}

std::string TableSource::describe() const {
  nlohmann::json all = nlohmann::json::array();
  nlohmann::json names[2] = {nlohmann::json::array(), nlohmann::json::array()};
  for (const TableColumn& column : columns()) {
    nlohmann::json one = {{"name", column.name}, {"type", column.type}, {"missing", column.missing}};
    if (column.type == "text") {
      one["categories"] = column.categories;
    } else {
      one["mean"] = column.mean;
      one["deviation"] = column.deviation;
    }
    names[static_cast<std::int64_t>(all.size()) < features_ ? 0 : 1].push_back(column.name);
    all.push_back(std::move(one));
  }
  nlohmann::json joins = nlohmann::json::array();
  for (const JoinedTable& join : file_->facts().joins) {
    joins.push_back({{"key", join.key}, {"rows", join.rows}, {"unmatched", join.unmatched}});
  }
  nlohmann::json left_out = nlohmann::json::array();
  nlohmann::json why = nlohmann::json::object();
  nlohmann::json doubtful = nlohmann::json::array();
  for (const LeftOutColumn& column : file_->facts().left_out) {
    left_out.push_back(column.name);
    why[column.name] = column.why;
    if (column.is_doubtful) {
      doubtful.push_back(column.name);
    }
  }
  return json_text(nlohmann::json{{"features", names[0]},
                                  {"targets", names[1]},
                                  {"columns", all},
                                  {"left_out", left_out},
                                  {"left_out_why", why},
                                  {"doubtful", doubtful},
                                  {"joins", joins},
                                  {"table", file_->path().string()},
                                  {"built", built_}},
                   -1);
}

std::string TableSource::value_name(std::int64_t item, std::size_t field, std::int64_t value) const {
  const std::size_t column = static_cast<std::size_t>(value) + (field > 0 ? static_cast<std::size_t>(features_) : 0);
  const nlohmann::json& files = file_->facts().key.at("files");
  const std::string of = files.size() == 1 ? std::filesystem::path(files[0].get<std::string>()).filename().string()
                                           : fmt::format("all rows of {} files", files.size());
  return fmt::format("'{}' in row {} of {} (headers not counted)", columns()[column].name, row_of(item) + 1, of);
}

namespace sources {

namespace {

std::unique_ptr<Source> open_table(SourceOptions& options, std::span<const ArrayView>) {
  TableOptions wanted;
  wanted.paths = options.texts("paths", {});
  wanted.features = options.some_texts("features");
  wanted.targets = options.texts("targets", {});
  wanted.categorical = options.texts("categorical", {});
  for (SourceOptions& join : options.several("joins")) {
    wanted.joins.push_back({join.text("key"), join.texts("paths", {})});
    join.done();
  }
  for (SourceOptions& made : options.several("texts")) {
    wanted.texts.push_back({made.text("file"), made.text("text"), {}});
    for (SourceOptions& column : made.several("left_out")) {
      wanted.texts.back().left_out.push_back({column.text("column"), column.text("why")});
      column.done();
    }
    made.done();
  }
  wanted.split.validation = options.real("validation", 0);
  wanted.split.seed = static_cast<std::uint64_t>(options.integer("split_seed", 0));
  wanted.split.column = options.word("split_column", "");
  wanted.split.values = options.texts("split_values", {});
  using Part = std::pair<const char*, TablePart>;
  wanted.part = options.one_of("part", {Part{"all", TablePart::kAll}, Part{"train", TablePart::kTrain},
                                        Part{"validation", TablePart::kValidation}});
  using Fill = std::pair<const char*, TableFill>;
  wanted.fill = options.one_of(
      "fill", {Fill{"nan", TableFill::kNan}, Fill{"mean", TableFill::kMean}, Fill{"value", TableFill::kValue}});
  wanted.fill_value = options.real("fill_value", 0);
  wanted.standardize = options.flag("standardize", false);
  wanted.missing = options.texts("missing", {});
  const std::string decimal = options.word("decimal", ".");
  wanted.decimal = decimal.size() == 1 ? decimal[0] : '\0';
  const std::string delimiter = options.word("delimiter", "");
  wanted.delimiter = delimiter.empty() ? '\0' : delimiter[0];
  wanted.cache = options.word("cache", "");
  wanted.threads = options.small("threads", 0);
  options.done();
  if (delimiter.size() > 1) {
    throw Error(ErrorCode::kUsage, "table option delimiter", "expected one byte, found " + delimiter);
  }
  return std::make_unique<TableSource>(wanted);
}

}  // namespace

const SourceKind& table() {
  static const SourceKind kKind = {"table", open_table};
  return kKind;
}

}  // namespace sources

}  // namespace unidle::data
