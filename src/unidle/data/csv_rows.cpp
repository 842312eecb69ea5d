#include "unidle/data/csv_rows.h"

#include <fmt/format.h>

#include <utility>

#include "unidle/base/error.h"

namespace unidle::data {

CsvRows::CsvRows(std::string_view text, std::string subject, char delimiter, std::int64_t line)
    : text_(text), subject_(std::move(subject)), delimiter_(delimiter), line_(line) {
  constexpr std::string_view kMark = "\xef\xbb\xbf";
  at_ = line == 1 && text_.starts_with(kMark) ? kMark.size() : 0;
}

bool CsvRows::at_line_end() const {
  return at_ == text_.size() || text_[at_] == '\n' || text_.substr(at_, 2) == "\r\n";
}

void CsvRows::read_field(std::string& field) {
  if (at_ == text_.size() || text_[at_] != '"') {
    const std::size_t begin = at_;
    while (!at_line_end() && text_[at_] != delimiter_) {
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
  if (!at_line_end() && text_[at_] != delimiter_) {
    throw Error(ErrorCode::kInput, fmt::format("{}:{}", subject_, line_), "text follows a closed quote");
  }
}

void CsvRows::skip_line() {
  const std::size_t feed = text_.find('\n', at_);
  at_ = feed == std::string_view::npos ? text_.size() : feed + 1;
  line_ += feed == std::string_view::npos ? 0 : 1;
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
  record_at_ = at_;
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
    ++at_;  // the delimiter
  }
  fields_.resize(count);
  return true;
}

}  // namespace unidle::data
