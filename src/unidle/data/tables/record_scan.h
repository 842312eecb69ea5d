// Finds the boundaries of CSV records in text that arrives in pieces.
#pragma once

#include <cstddef>
#include <string_view>

namespace unidle::data::tables {

/// The parser's state between two bytes.
enum class CsvState {
  kRecord,  // at the start of a record
  kField,   // at the start of a field
  kPlain,   // in an unquoted field, or after a closing quote and another byte
  kQuoted,  // inside quotes
  kQuote,   // after a quote inside quotes: the end of the field, or the first of a doubled quote
};

struct RecordScan {
  CsvState state = CsvState::kRecord;              // after the text
  std::size_t first_end = std::string_view::npos;  // after the line feed of the first record that ends in it
  std::size_t opened = std::string_view::npos;     // the last quote that opened a field
};

/// Scans `text`, continuing in state `before`. A quote in an unquoted field is an ordinary byte, as in Python's csv.
/// Pure.
RecordScan scan_records(CsvState before, std::string_view text, char delimiter);

}  // namespace unidle::data::tables
