#include "unidle/data/detail/csv_rows.h"

#include <fmt/format.h>

#include <utility>

#include "unidle/base/error.h"

namespace unidle::data::detail {

CsvRows::CsvRows(std::string_view text, std::string subject) : text_(text), subject_(std::move(subject)) {
  constexpr std::string_view kMark = "\xef\xbb\xbf";
  at_ = text_.starts_with(kMark) ? kMark.size() : 0;
}

bool CsvRows::at_line_end() const {
  return at_ == text_.size() || text_[at_] == '\n' || text_.substr(at_, 2) == "\r\n";
}

void CsvRows::read_field(std::string& field) {
  if (at_ == text_.size() || text_[at_] != '"') {
    const std::size_t begin = at_;
    while (!at_line_end() && text_[at_] != ',') {
      ++at_;
    }
    field.assign(text_.substr(begin, at_ - begin));
    return;
  }
  const std::int64_t opened = line_;
  for (++at_;; ++at_) {
    if (at_ == text_.size()) {
      throw Error(ErrorCode::kInput, fmt::format("{}:{}", subject_, opened), "a quote is not closed");
    }
    if (text_[at_] == '"') {
      ++at_;
      if (at_ == text_.size() || text_[at_] != '"') {
        break;
      }
    }
    line_ += text_[at_] == '\n' ? 1 : 0;
    field += text_[at_];
  }
  if (!at_line_end() && text_[at_] != ',') {
    throw Error(ErrorCode::kInput, fmt::format("{}:{}", subject_, line_), "text follows a closed quote");
  }
}

bool CsvRows::next() {
  while (at_ < text_.size() && at_line_end()) {
    at_ += text_[at_] == '\n' ? 1 : 2;
    ++line_;
  }
  if (at_ == text_.size()) {
    return false;
  }
  record_line_ = line_;
  std::size_t count = 0;
  for (;;) {
    if (count == fields_.size()) {
      fields_.emplace_back();
    }
    fields_[count].clear();
    read_field(fields_[count++]);
    if (at_line_end()) {
      break;
    }
    ++at_;  // the comma
  }
  fields_.resize(count);
  return true;
}

}  // namespace unidle::data::detail
