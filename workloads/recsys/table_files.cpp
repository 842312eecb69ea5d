#include "workloads/recsys/table_files.h"

#include <fmt/format.h>

#include <algorithm>

#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/data/csv_rows.h"

namespace unidle::workloads::recsys {

PartWriter::PartWriter(std::filesystem::path folder, std::vector<std::string> feature_names, std::int64_t rows,
                       int parts)
    : folder_(std::move(folder)), names_(std::move(feature_names)), rows_(rows), parts_(parts) {}

void PartWriter::open_next() {
  close();
  path_ = folder_ / fmt::format("log_part{}.csv", ++part_);
  file_.open(path_, std::ios::binary | std::ios::trunc);
  line_.clear();
  for (const std::string_view name : kLeadingColumns) {
    line_ += line_.empty() ? "" : ",";
    line_ += name;
  }
  for (const std::string& name : names_) {
    line_ += ',' + name;
  }
  file_ << line_ << '\n';
}

void PartWriter::add(const Interaction& row, std::string_view features) {
  if (part_ < parts_ && written_ >= part_ * rows_ / parts_) {
    open_next();
  }
  line_.clear();
  fmt::format_to(std::back_inserter(line_), "{},{},{},{},{},", row.user, row.video, row.click ? 1 : 0, row.play_time_ms,
                 row.validation ? "validation" : "train");
  file_ << line_ << features << '\n';
  if (!file_) {
    throw Error(ErrorCode::kIo, path_.string(), "cannot be written: the disk may be full");
  }
  ++written_;
}

void PartWriter::close() {
  if (file_.is_open()) {
    file_.close();
    if (!file_) {
      throw Error(ErrorCode::kIo, path_.string(), "cannot be finished: the disk may be full");
    }
  }
}

std::vector<std::string> feature_names(const std::filesystem::path& folder, const std::string& prepare_command) {
  const std::filesystem::path path = folder / "log_part1.csv";
  std::ifstream file(path, std::ios::binary);
  std::string header;
  if (!file || !std::getline(file, header)) {
    throw Error(ErrorCode::kMissing, path.string(), "there is no table yet", "make it: " + prepare_command);
  }
  data::CsvRows row(header, path.string());
  std::vector<std::string> names;
  if (row.next()) {
    for (const std::string& name : row.fields()) {
      if (std::find(std::begin(kLeadingColumns), std::end(kLeadingColumns), name) == std::end(kLeadingColumns)) {
        names.push_back(name);
      }
    }
  }
  if (names.empty()) {
    throw Error(ErrorCode::kInput, path.string() + ":1", "has no columns of features");
  }
  return names;
}

}  // namespace unidle::workloads::recsys
