// Where records of comma-separated values begin and end, in text that comes in pieces.
#pragma once

#include <cstddef>
#include <string_view>

namespace unidle::data::tables {

/// What the byte before a place leaves behind.
enum class CsvState {
  kRecord,  // a record begins here
  kField,   // a field begins here
  kPlain,   // within a field without quotes, or behind a closed quote and something else
  kQuoted,  // within quotes
  kQuote,   // behind a quote within quotes: the end of the field, or the first of two that stand for one
};

struct RecordScan {
  CsvState state = CsvState::kRecord;              // behind the text
  std::size_t first_end = std::string_view::npos;  // behind the line feed of the first record that ends in it
  std::size_t opened = std::string_view::npos;     // the last quote that opened a field
};

/// Goes over `text`, which follows what left `before`. A quote within a field without quotes is a byte like others, as
/// in Python's csv. Pure.
RecordScan scan_records(CsvState before, std::string_view text, char delimiter);

}  // namespace unidle::data::tables
