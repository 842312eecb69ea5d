// Statistics of a column's cells, from which its type is derived.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "unidle/data/tables/number.h"

namespace unidle::data::tables {

/// Counts cells: numbers, markers of missing values ("?", "-", "unknown"), and numbers in another notation.
class ColumnStatistics {
 public:
  explicit ColumnStatistics(const NumberFormat& format) : format_(&format) {}

  void add(std::string_view cell);
  void add_number() { ++numbers_; }
  void add_text(std::string_view cell);

  /// True if there are cells, all without a value.
  bool is_blank() const { return missing_ > 0 && filled() == 0; }
  std::int64_t filled() const { return numbers_ + texts_; }
  std::int64_t texts() const { return texts_; }
  /// True if at most one cell in a hundred is text, which then counts as a fault in the file.
  bool is_of_numbers() const { return texts_ * 100 <= filled(); }
  /// True if all cells are numbers or markers, but in another notation than the current one.
  bool is_otherwise_of_numbers() const {
    return texts_ > 0 && texts_ == markers_ + decimals_ && numbers_ + decimals_ > 0;
  }
  /// True if a person would call it a column of numbers: nine in ten are, or all are in another notation.
  bool is_mostly_numbers() const { return (numbers_ > 0 && texts_ * 10 <= numbers_) || is_otherwise_of_numbers(); }
  /// Describes its contents, and the options that would read all of them as numbers.
  std::string what() const;
  /// `missing=["?"], decimal=","`; empty if no such options are known.
  std::string options() const;

 private:
  static void keep(std::vector<std::string>& texts, std::string_view text);
  char other_point() const { return format_->decimal == '.' ? ',' : '.'; }
  std::string shown_texts() const;

  const NumberFormat* format_;
  std::int64_t missing_ = 0;
  std::int64_t numbers_ = 0;
  std::int64_t texts_ = 0;
  std::int64_t markers_ = 0;    // texts that mark a missing value
  std::int64_t decimals_ = 0;   // texts that are numbers with the other decimal point or with separators
  std::int64_t thousands_ = 0;  // of these, ambiguous ones: "1,234"
  std::int64_t groups_ = 0;     // of these, unambiguous ones: "1,234,567"
  std::vector<std::string> first_markers_;
  std::vector<std::string> first_others_;
};

/// The option that reads a text among numbers: " (missing=[\"?\"] reads it as missing)".
std::string advice_for(std::string_view text, const NumberFormat& format);

}  // namespace unidle::data::tables
