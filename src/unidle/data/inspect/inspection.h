// What the data pipeline sees in files, before anybody trains on them.
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
  /// How much of it is looked at; from any thread, one call at a time.
  std::function<void(std::uint64_t done, std::uint64_t of)> progress{};
};

/// What is in the files, and all that is wrong with them.
struct Inspection {
  struct Column {
    std::string name;
    std::string type;
    std::optional<std::int64_t> missing;  // nothing where telling it would take reading all values
  };
  struct Problem {
    std::string at;  // "file:line", or the file
    std::string what;
  };

  std::string_view kind;  // "table", "images", "npy", "sequences" or "pairs"
  std::int64_t rows = 0;
  std::vector<Column> columns;
  std::vector<Problem> problems;
  std::vector<std::vector<std::string>> sample;  // the first rows, a cell a column
  /// Files in the folder itself that are of another kind, by extension; hidden ones are not counted. Not in the JSON.
  std::map<std::string, std::uint64_t> passed_over{};

  /// Lists it as long as there are not too many; the last one then tells how many there are.
  void add_problem(std::string at, std::string what);
  void add_problem(const Error& error);

 private:
  std::int64_t all_problems_ = 0;
};

/// Looks at all of the files: every record of tables and texts, every picture, the header of every array. A table is a
/// file or folder of CSV or its parts; pairs are a folder with high/ and low/; npy is .npy, .npz or a folder of them;
/// sequences are FASTA or lines of text; images are a folder of classes or a list of pictures. Tar archives, or a
/// folder of them, are images where they hold pictures, otherwise npy where they hold tensors, otherwise a table.
/// Throws kInput for a path that is not there, or at which there is nothing of these kinds; kUsage for several paths
/// that are neither tables nor archives. What is wrong inside is a problem and throws nothing.
Inspection inspect(const std::vector<std::string>& paths, const InspectOptions& options);

/// {"kind", "rows", "columns": [{"name", "type", "missing"}], "problems": [{"at", "what"}], "sample": [[cell]]}.
nlohmann::ordered_json to_json(const Inspection& inspection);

}  // namespace unidle::data
