#include "unidle/data/tables/record_scan.h"

namespace unidle::data::tables {

namespace {

CsvState state_behind(char byte, char delimiter) {
  if (byte == '\n') {
    return CsvState::kRecord;
  }
  return byte == delimiter ? CsvState::kField : CsvState::kPlain;
}

/// Walks from quote to quote: the bytes between are all inside or all outside of quotes.
class QuoteWalk {
 public:
  QuoteWalk(CsvState before, std::string_view text, char delimiter) : text_(text), delimiter_(delimiter) {
    scan_.state = before;
  }

  RecordScan run() {
    while (at_ < text_.size()) {
      if (scan_.state == CsvState::kQuoted) {
        inside();
      } else if (scan_.state == CsvState::kQuote && text_[at_] == '"') {
        scan_.state = CsvState::kQuoted;
        ++at_;
      } else {
        outside();
      }
    }
    return scan_;
  }

 private:
  void inside() {
    const std::size_t quote = text_.find('"', at_);
    if (quote == std::string_view::npos) {
      at_ = text_.size();
    } else {
      scan_.state = CsvState::kQuote;
      at_ = quote + 1;
    }
  }

  /// Moves past the next quote.
  void outside() {
    std::size_t quote = text_.find('"', at_);
    const std::size_t end = quote == std::string_view::npos ? text_.size() : quote;
    if (end > at_) {
      if (scan_.first_end == std::string_view::npos) {
        const std::size_t feed = text_.substr(0, end).find('\n', at_);
        scan_.first_end = feed == std::string_view::npos ? feed : feed + 1;
      }
      scan_.state = state_behind(text_[end - 1], delimiter_);
      at_ = end;
      return;
    }
    const bool opens = scan_.state == CsvState::kRecord || scan_.state == CsvState::kField;
    scan_.state = opens ? CsvState::kQuoted : CsvState::kPlain;
    scan_.opened = opens ? at_ : scan_.opened;
    ++at_;
  }

  std::string_view text_;
  char delimiter_;
  std::size_t at_ = 0;
  RecordScan scan_;
};

}  // namespace

RecordScan scan_records(CsvState before, std::string_view text, char delimiter) {
  return QuoteWalk(before, text, delimiter).run();
}

}  // namespace unidle::data::tables
