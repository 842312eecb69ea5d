// The CSV parts that the workload trains on.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

namespace unidle::workloads::recsys {

/// Columns before the features, as KuaiRand's logs name them; `split` is "train" or "validation".
constexpr std::string_view kLeadingColumns[] = {"user_id", "video_id", "is_click", "play_time_ms", "split"};

/// A row without its features.
struct Interaction {
  std::int64_t user = 0;
  std::int64_t video = 0;
  bool click = false;
  std::int64_t play_time_ms = 0;
  bool validation = false;
};

/// Writes log_part1.csv, log_part2.csv, ..., each with a header and an equal share of the rows, up to one. One thread.
class PartWriter {
 public:
  PartWriter(std::filesystem::path folder, std::vector<std::string> feature_names, std::int64_t rows, int parts);

  /// `features`: comma-separated, one per name. Throws kIo naming the file.
  void add(const Interaction& row, std::string_view features);
  /// Throws kIo when the last file cannot be finished.
  void close();

 private:
  void open_next();

  std::filesystem::path folder_;
  std::vector<std::string> names_;
  std::int64_t rows_;
  int parts_;
  std::int64_t written_ = 0;
  int part_ = 0;
  std::filesystem::path path_;
  std::ofstream file_;
  std::string line_;
};

/// Names of the features in a prepared folder: all columns except the leading ones. Throws kMissing, with the command
/// to run, when there is no table; kInput when it has no features.
std::vector<std::string> feature_names(const std::filesystem::path& folder, const std::string& prepare_command);

}  // namespace unidle::workloads::recsys
