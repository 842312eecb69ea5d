// Reports what the data pipeline finds in files, before training.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace unidle {
class Error;
}

namespace unidle::data {

struct InspectOptions {
  std::int64_t sample_rows = 5;
  /// Reports progress; called from any thread, one call at a time.
  std::function<void(std::uint64_t done, std::uint64_t of)> progress{};
};

/// The contents of the files, and all their problems.
struct Inspection {
  struct Column {
    std::string name;
    std::string type;
    std::optional<std::int64_t> missing;  // nothing when counting would require reading all values
  };
  struct Problem {
    std::string at;  // "file:line", or the file
    std::string what;
  };

  std::string_view kind;  // "table", "images", "npy", "sequences" or "pairs"
  std::int64_t rows = 0;
  std::vector<Column> columns;
  std::vector<Problem> problems;
  std::vector<std::vector<std::string>> sample;  // the first rows, a cell per column
  /// Files in the folder itself of other kinds, by extension, without hidden ones. Not in the JSON.
  std::map<std::string, std::uint64_t> passed_over{};

  /// Adds a problem to the list; beyond a limit, only the total is counted, in the last entry.
  void add_problem(std::string at, std::string what);
  void add_problem(const Error& error);

 private:
  std::int64_t all_problems_ = 0;
};

/// Inspects all files: every record of tables and texts, every picture, the header of every array. A table is a CSV
/// file, a folder of CSV, or its parts; pairs are a folder with high/ and low/; npy is .npy, .npz or a folder of them;
/// sequences are FASTA or lines of text; images are a folder of classes or a list of pictures. Tar archives or a folder
/// of them count as images when they hold pictures, otherwise as npy when they hold tensors, otherwise as a table.
/// Throws kInput for a missing path or one without any of these; kUsage for several paths unless they are tables or
/// archives. Faults inside the files become problems, not exceptions.
Inspection inspect(const std::vector<std::string>& paths, const InspectOptions& options);

/// {"kind", "rows", "columns": [{"name", "type", "missing"}], "problems": [{"at", "what"}], "sample": [[cell]]}.
nlohmann::ordered_json to_json(const Inspection& inspection);

}  // namespace unidle::data
