#include <fmt/format.h>

#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/data/detail/line_ends.h"
#include "unidle/data/inspect/kinds.h"
#include "unidle/data/sources/sequences.h"

namespace unidle::data::inspect_kinds {

namespace {

/// Inspects one record after the other: a FASTA header and its lines, otherwise one line.
class SequenceInspection {
 public:
  SequenceInspection(std::string path, const InspectOptions& options) : path_(std::move(path)), options_(options) {
    result_.kind = "sequences";
    fasta_ = is_fasta(path_);
  }

  Inspection run() {
    const std::string text = detail::without_mark(detail::with_line_feeds(read_file(path_)));
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = std::min(text.find('\n', at), text.size());
      std::string_view line = std::string_view(text).substr(at, end - at);
      at = end + 1;
      ++number_;
      if (line.ends_with('\r')) {
        line.remove_suffix(1);
      }
      if (line.find('\0') != std::string_view::npos) {
        result_.add_problem(place(number_), "holds a zero byte, so it is not text");
        return std::move(result_);
      }
      if (!line.empty()) {
        take(line);
      }
    }
    finish_record();
    if (result_.rows == 0 && result_.problems.empty()) {
      result_.add_problem(path_, "holds no sequences");
    }
    if (fasta_) {
      result_.columns.push_back({"name", "text", unnamed_});
    }
    result_.columns.push_back({"sequence", "text", empty_});
    return std::move(result_);
  }

 private:
  std::string place(std::int64_t line) const { return fmt::format("{}:{}", path_, line); }

  void take(std::string_view line) {
    if (fasta_ && line.front() != '>') {
      if (record_line_ == 0) {
        result_.add_problem(place(number_), "expected a line with > before a sequence");
        record_line_ = number_;
      }
      sequence_ += line;
      return;
    }
    finish_record();
    record_line_ = number_;
    name_ = fasta_ ? line.substr(1) : std::string_view();
    sequence_ = fasta_ ? std::string_view() : line;
  }

  void finish_record() {
    if (record_line_ == 0) {
      return;
    }
    ++result_.rows;
    unnamed_ += name_.empty() ? 1 : 0;
    if (sequence_.empty()) {
      ++empty_;
      result_.add_problem(place(record_line_), "has no sequence");
    }
    if (static_cast<std::int64_t>(result_.sample.size()) < options_.sample_rows) {
      result_.sample.push_back(fasta_ ? std::vector{name_, sequence_} : std::vector{sequence_});
    }
    record_line_ = 0;
  }

  std::string path_;
  const InspectOptions& options_;
  bool fasta_ = false;
  Inspection result_;
  std::int64_t number_ = 0;
  std::int64_t record_line_ = 0;
  std::int64_t unnamed_ = 0;
  std::int64_t empty_ = 0;
  std::string name_;
  std::string sequence_;
};

}  // namespace

Inspection sequences(const std::string& path, const InspectOptions& options) {
  return SequenceInspection(path, options).run();
}

}  // namespace unidle::data::inspect_kinds
