// CSV in one or two parts: its records are the same however the file is cut into chunks, its rows are the numbers of
// its cells, and inspecting it refuses nothing that building takes. Two parts are also a table and its side table.
#include <map>
#include <nlohmann/json.hpp>

#include "fuzz.h"
#include "unidle/base/disk.h"
#include "unidle/data/csv_rows.h"
#include "unidle/data/inspect/inspection.h"
#include "unidle/data/sources/table.h"
#include "unidle/data/tables/chunks.h"
#include "unidle/data/tables/number.h"

namespace unidle::fuzz::targets {

namespace {

/// Its files need not outlive a power failure.
class QuickDisk final : public Disk {
 public:
  int sync(int) override { return 0; }
};

using Records = std::vector<std::vector<std::string>>;

Records records_in_chunks(const data::tables::CsvLayout& layout, std::size_t chunk_bytes) {
  data::tables::Chunks chunks(layout, chunk_bytes);
  data::tables::Chunk chunk;
  Records records;
  while (chunks.next(chunk)) {
    data::CsvRows rows(chunk.text, "chunk", layout.delimiter, 2);
    while (rows.next()) {
      records.push_back(rows.fields());
    }
  }
  return records;
}

void compare_values(const data::TableSource& source, const data::tables::CsvLayout& layout) {
  const Records records = records_in_chunks(layout, 1 << 20);
  require(source.items() == static_cast<std::int64_t>(records.size()));
  std::vector<float> row(source.columns().size());
  data::Places places{std::as_writable_bytes(std::span(row))};
  for (std::size_t item = 0; item < records.size(); ++item) {
    source.read({static_cast<std::int64_t>(item)}, {&places, 1});
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string& cell = records[item][layout.column(source.columns()[i].name)];
      const auto number = data::tables::is_missing(cell) ? std::nullopt : data::tables::cell_number(cell);
      require(number ? row[i] == static_cast<float>(*number) || row[i] != row[i] : row[i] != row[i]);
    }
  }
}

/// The second table joined to the first by its first column: each row has the numbers of the record with its key.
void compare_joined(const std::string& table, const std::string& side) {
  const data::tables::CsvLayout layout = data::tables::read_layout({table}, 0);
  const data::tables::CsvLayout side_layout = data::tables::read_layout({side}, 0);
  const std::string& key = layout.columns.front();
  QuickDisk disk;
  data::TableOptions options{.paths = {table}, .cache = (scratch_folder() / "tables").string(), .threads = 2};
  options.joins = {{key, {side}}};
  const data::TableSource source(options, disk);
  const Records rows = records_in_chunks(layout, 1 << 20);
  std::map<std::string, std::vector<std::string>> partners;
  for (const std::vector<std::string>& record : records_in_chunks(side_layout, 1 << 20)) {
    require(partners.emplace(record[side_layout.column(key)], record).second);
  }
  require(source.items() == static_cast<std::int64_t>(rows.size()));
  std::vector<float> row(source.columns().size());
  data::Places places{std::as_writable_bytes(std::span(row))};
  for (std::size_t item = 0; item < rows.size(); ++item) {
    source.read({static_cast<std::int64_t>(item)}, {&places, 1});
    const auto partner = partners.find(rows[item].front());
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string& name = source.columns()[i].name;
      std::optional<double> number;
      if (layout.has(name)) {
        const std::string& cell = rows[item][layout.column(name)];
        number = data::tables::is_missing(cell) ? std::nullopt : data::tables::cell_number(cell);
      } else if (partner != partners.end()) {
        const std::string& cell = partner->second[side_layout.column(name)];
        number = data::tables::is_missing(cell) ? std::nullopt : data::tables::cell_number(cell);
      }
      require(number ? row[i] == static_cast<float>(*number) || row[i] != row[i] : row[i] != row[i]);
    }
  }
}

void run_table(std::string_view bytes) {
  const auto [first, second] = split(bytes, "\n===\n");
  std::vector<std::string> paths{put("table/a_part1.csv", first).string()};
  if (!second.empty()) {
    paths.push_back(put("table/a_part2.csv", second).string());
  }
  bool refused = true;
  may_refuse([&] {
    const data::tables::CsvLayout layout = data::tables::read_layout(paths, 0);
    require(records_in_chunks(layout, 3) == records_in_chunks(layout, 64));
  });
  may_refuse(
      [&] {
        QuickDisk disk;
        data::TableOptions options{.paths = paths, .cache = (scratch_folder() / "tables").string(), .threads = 2};
        const data::TableSource source(options, disk);
        refused = false;
        compare_values(source, data::tables::read_layout(paths, 0));
      },
      {ErrorCode::kInput, ErrorCode::kUsage});
  if (paths.size() > 1) {
    const std::string side = put("table/side.csv", second).string();
    may_refuse([&] { compare_joined(paths.front(), side); }, {ErrorCode::kInput, ErrorCode::kUsage});
  }
  may_refuse([&] {
    const data::Inspection found = data::inspect(paths, {});
    require(!data::to_json(found).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).empty());
    for (const auto& cells : found.sample) {
      require(cells.size() == found.columns.size());
    }
    const auto breaks = [](const auto& problem) { return problem.what.find("columns; expected") != std::string::npos; };
    require(refused || std::none_of(found.problems.begin(), found.problems.end(), breaks));
  });
}

}  // namespace

const Target& table() {
  static const Target kTarget = {"table", run_table};
  return kTarget;
}

}  // namespace unidle::fuzz::targets
