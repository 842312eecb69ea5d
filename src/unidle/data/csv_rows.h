// Parses comma-separated values record by record (RFC 4180).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace unidle::data {

/// Fields may be quoted and then contain commas, line ends and doubled quotes. Lines end with LF or CRLF; a byte order
/// mark and empty lines are skipped. Throws kInput with "subject:line" for an unclosed quote and for text after a
/// closing quote.
class CsvRows {
 public:
  /// `line`: line number of the text's start in its file; only line 1 may have a byte order mark.
  CsvRows(std::string_view text, std::string subject, char delimiter = ',', std::int64_t line = 1);

  /// Reads the next record into fields(); returns false at the end.
  bool next();
  const std::vector<std::string>& fields() const { return fields_; }
  /// The record's raw text, without its line end.
  std::string_view record() const { return text_.substr(record_at_, at_ - record_at_); }
  /// After an exception: continues behind the next line feed.
  void skip_line();
  /// Line of the record's first byte, from 1.
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
