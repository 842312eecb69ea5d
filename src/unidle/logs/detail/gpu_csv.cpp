#include "unidle/logs/detail/gpu_csv.h"

#include <charconv>

#include "unidle/base/characters.h"
#include "unidle/logs/detail/gpu_lines.h"
#include "unidle/logs/detail/numbers.h"
#include "unidle/logs/lines.h"

namespace unidle::logs::detail {

std::string_view RoundCounter::id_of(const GpuSample& sample) {
  constexpr std::int64_t kSameRoundNs = 50'000'000;
  const bool same = sample.t_ns && last_ns_ && *sample.t_ns >= *last_ns_ && *sample.t_ns - *last_ns_ < kSameRoundNs;
  place_ = same ? place_ + 1 : 0;
  last_ns_ = sample.t_ns;
  const auto [end, error] = std::to_chars(text_.data(), text_.data() + text_.size(), place_);
  return {text_.data(), static_cast<std::size_t>(end - text_.data())};
}

bool GpuCsvReader::may_be_row(std::string_view line) const {
  return header_ && (is_digit(line.front()) || line.front() == '[' || known_columns(line, names_) == 0);
}

void GpuCsvReader::read(std::string_view line) {
  line = trimmed(line);
  if (line.empty()) {
    return;
  }
  if (is_complaint(line)) {
    if (header_) {
      row(line);  // "2025/01/01 10:00:00.000, 0, [GPU is lost]" has a time
    }
    complain(line, log_);
    return;
  }
  if (!may_be_row(line)) {
    if (auto header = read_header(line, names_)) {
      header_ = *header;
      ++headers_;
      return;
    }
    header_ = header_ || headless_ == nullptr ? header_ : headless_(line);
  }
  if (!header_ || !row(line)) {
    ++log_.broken_lines;
  }
}

bool GpuCsvReader::row(std::string_view line) {
  Cells cells;
  if (split_cells(line, cells) != header_->size) {
    return false;
  }
  auto sample = sample_of(*header_, cells);
  if (!sample) {
    return false;
  }
  if (window_.contains(sample->t_ns)) {
    if (!header_->has_id) {
      sample->id = rounds_.id_of(*sample);
    }
    log_.add(*sample);
  }
  return true;
}

bool is_gpu_csv(std::string_view head, std::span<const ColumnName> names, HeaderFromRow headless) {
  Source source("", head);
  Lines lines(source);
  GpuLog log;
  const Window everything;
  GpuCsvReader reader(log, everything, names, headless);
  std::string_view line;
  std::int64_t read = 0;
  while (lines.next(line)) {
    if (lines.ended() || read == 0) {
      reader.read(line);
      ++read;
    }
  }
  const std::int64_t others = log.broken_lines - log.complaints;
  return reader.headers() + log.samples + log.complaints > others;
}

}  // namespace unidle::logs::detail
