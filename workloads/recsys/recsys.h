// The workload `recsys`: predicts from tables how long a video is played and whether it is clicked.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "unidle/train/workload.h"

namespace unidle::workloads::recsys {

const train::WorkloadKind& recsys();

struct TableRequest {
  std::string source;     // a folder with ml-100k's files, "generated", or empty for those of RecBole's package
  std::int64_t rows = 0;  // of a generated table; 0: 200,000
  int parts = 2;
  std::uint64_t seed = 1;
};

/// Writes log_part1.csv ... to `folder`, atomically. Returns a description of the result and its source. Without a
/// source and without RecBole's package the table is generated. Throws what reading the ratings throws.
std::string prepare_table(const std::filesystem::path& folder, const TableRequest& request);

/// Area under the ROC curve, from the counts of clicks and other rows per bin of scores, in rising order. Ties in a bin
/// count half. 0.5 when either kind is missing.
double area_under_curve(const double* clicks, const double* others, std::size_t bins);

}  // namespace unidle::workloads::recsys
