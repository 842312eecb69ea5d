// Comma-separated values, record by record (RFC 4180).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace unidle::data {

/// Fields may be quoted, with commas, line ends and doubled quotes inside. Lines end with LF or CRLF; a byte order mark
/// and empty lines are passed over. Throws kInput with "subject:line" for a quote that is not closed and for text
/// behind a closed one.
class CsvRows {
 public:
  /// `line`: the number of the text's first line in its file; only a first line has a byte order mark.
  CsvRows(std::string_view text, std::string subject, char delimiter = ',', std::int64_t line = 1);

  /// The next record into fields(); false at the end.
  bool next();
  const std::vector<std::string>& fields() const { return fields_; }
  /// The record as it stands in the text, without its line end.
  std::string_view record() const { return text_.substr(record_at_, at_ - record_at_); }
  /// After a throw: on to what follows the next line feed.
  void skip_line();
  /// Of the record's first byte, from 1.
  std::int64_t line() const { return record_line_; }
  const std::string& subject() const { return subject_; }

 private:
  void read_field(std::string& field);
  bool at_line_end() const;

  std::string_view text_;
  std::string subject_;
  char delimiter_;
  std::size_t at_ = 0;
  std::size_t record_at_ = 0;
  std::int64_t line_;
  std::int64_t record_line_ = 1;
  std::vector<std::string> fields_;
};

}  // namespace unidle::data
