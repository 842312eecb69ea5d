// Records in the scratch folder, and everything that unidle makes of one.
#pragma once

#include <filesystem>
#include <optional>
#include <string_view>

#include "unidle/record/record.h"

namespace unidle::fuzz {

/// A record that is written as `unidle run` writes it, of a CPU run from second 1 to 100.
class ScratchRecord {
 public:
  ScratchRecord();
  record::Writer& writer() { return *writer_; }
  /// Closes the record and diagnoses it.
  void diagnose();

 private:
  std::optional<record::Writer> writer_;
};

/// A record of any rows, one a line: the table's name and its columns, parted by tabs. Rows that a record cannot hold
/// are left out; in the output, \n stands for a line's end. Returns the record's folder.
std::filesystem::path write_rows(std::string_view lines);

/// Diagnoses a record in both languages, as text and JSON. It may be refused as input.
void diagnose_record(const std::filesystem::path& folder);

}  // namespace unidle::fuzz
