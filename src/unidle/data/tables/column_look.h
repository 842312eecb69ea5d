// What the cells of a column look like, before it is said what the column is.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "unidle/data/tables/number.h"

namespace unidle::data::tables {

/// Counts cells: which are numbers, which stand for a value that is missing ("?", "-", "unknown"), which are numbers
/// but for their decimal point.
class ColumnLook {
 public:
  explicit ColumnLook(const NumberFormat& format) : format_(&format) {}

  void add(std::string_view cell);
  void add_number() { ++numbers_; }
  void add_text(std::string_view cell);

  /// Whether there are cells, and none holds a value.
  bool is_blank() const { return missing_ > 0 && filled() == 0; }
  std::int64_t filled() const { return numbers_ + texts_; }
  std::int64_t texts() const { return texts_; }
  /// Whether texts are so few that they are faults of the file: one in a hundred.
  bool is_of_numbers() const { return texts_ * 100 <= filled(); }
  /// Whether all of it are numbers and what stands for none, but not as they are read now.
  bool is_otherwise_of_numbers() const {
    return texts_ > 0 && texts_ == markers_ + decimals_ && numbers_ + decimals_ > 0;
  }
  /// Whether a person would call it a column of numbers: nine in ten are, or all are in another form.
  bool is_mostly_numbers() const { return (numbers_ > 0 && texts_ * 10 <= numbers_) || is_otherwise_of_numbers(); }
  /// What is in it, and the options that would make numbers of all of it.
  std::string what() const;
  /// `missing=["?"], decimal=","`; empty where no such options are known.
  std::string options() const;

 private:
  static void keep(std::vector<std::string>& texts, std::string_view text);
  char other_point() const { return format_->decimal == '.' ? ',' : '.'; }
  std::string shown_texts() const;

  const NumberFormat* format_;
  std::int64_t missing_ = 0;
  std::int64_t numbers_ = 0;
  std::int64_t texts_ = 0;
  std::int64_t markers_ = 0;    // of the texts, those that stand for no value
  std::int64_t decimals_ = 0;   // of the texts, those that are numbers with the other decimal point, or with groups
  std::int64_t thousands_ = 0;  // of these, those that may be groups of thousands: "1,234"
  std::int64_t groups_ = 0;     // of these, those that are: "1,234,567"
  std::vector<std::string> first_markers_;
  std::vector<std::string> first_others_;
};

/// Of one text that stands among numbers: the option that would read it, " (missing=[\"?\"] reads it as missing)".
std::string advice_for(std::string_view text, const NumberFormat& format);

}  // namespace unidle::data::tables
