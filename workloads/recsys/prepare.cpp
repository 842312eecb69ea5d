// Prepares the tables of the workload.
#include <fmt/format.h>

#include "unidle/base/error.h"
#include "workloads/common/package_files.h"
#include "workloads/common/whole_folder.h"
#include "workloads/recsys/generator.h"
#include "workloads/recsys/ratings.h"
#include "workloads/recsys/recsys.h"

namespace unidle::workloads::recsys {

namespace {

constexpr std::int64_t kGeneratedRows = 200000;

/// Empty when the table is to be generated.
std::filesystem::path ratings_folder(const TableRequest& request) {
  if (!request.source.empty()) {
    return request.source == "generated" ? "" : request.source;
  }
  const auto found = find_package_file("recbole/dataset_example/ml-100k/ml-100k.inter");
  return found && request.rows == 0 ? found->parent_path() : "";
}

}  // namespace

std::string prepare_table(const std::filesystem::path& folder, const TableRequest& request) {
  const std::filesystem::path source = ratings_folder(request);
  std::int64_t rows = request.rows > 0 ? request.rows : kGeneratedRows;
  make_whole_folder(folder, [&](const std::filesystem::path& made) {
    if (source.empty()) {
      write_generated(made, rows, request.parts, request.seed);
    } else {
      rows = write_ratings(read_ratings(source), made, request.parts);
    }
  });
  return fmt::format("{} rows in {} parts in {}, {}", rows, request.parts, folder.string(),
                     source.empty() ? "generated in the shape of KuaiRand" : "from " + source.string());
}

}  // namespace unidle::workloads::recsys
