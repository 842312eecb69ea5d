// Comma-separated values, record by record (RFC 4180).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace unidle::data::detail {

/// Fields may be quoted, with commas, line ends and doubled quotes inside. Lines end with LF or CRLF; a byte order mark
/// and empty lines are passed over. Throws kInput with "subject:line" for a quote that is not closed and for text
/// behind a closed one.
class CsvRows {
 public:
  CsvRows(std::string_view text, std::string subject);

  /// The next record into fields(); false at the end.
  bool next();
  const std::vector<std::string>& fields() const { return fields_; }
  /// Of the record's first byte, from 1.
  std::int64_t line() const { return record_line_; }
  const std::string& subject() const { return subject_; }

 private:
  void read_field(std::string& field);
  bool at_line_end() const;

  std::string_view text_;
  std::string subject_;
  std::size_t at_ = 0;
  std::int64_t line_ = 1;
  std::int64_t record_line_ = 1;
  std::vector<std::string> fields_;
};

}  // namespace unidle::data::detail
