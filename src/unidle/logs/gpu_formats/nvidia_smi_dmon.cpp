// nvidia-smi dmon, with or without date and time.
#include <array>

#include "unidle/base/characters.h"
#include "unidle/base/clock.h"
#include "unidle/logs/detail/gpu_lines.h"
#include "unidle/logs/detail/numbers.h"
#include "unidle/logs/gpu_format.h"
#include "unidle/logs/timestamp.h"

namespace unidle::logs::gpu_formats {

namespace {

constexpr std::size_t kMostWords = 64;
using Tokens = std::array<std::string_view, kMostWords>;

/// Splits at blanks and commas; dmon's CSV form has commas.
std::size_t words_of(std::string_view line, Tokens& tokens) {
  std::size_t count = 0;
  std::size_t at = 0;
  const auto is_gap = [](char c) { return c == ' ' || c == '\t' || c == ','; };
  while (at < line.size()) {
    if (is_gap(line[at])) {
      ++at;
      continue;
    }
    const std::size_t begin = at;
    while (at < line.size() && !is_gap(line[at])) {
      ++at;
    }
    if (count == tokens.size()) {
      return 0;
    }
    tokens[count++] = line.substr(begin, at - begin);
  }
  return count;
}

/// The words of a header line after its "#".
std::size_t header_words(std::string_view line, Tokens& tokens) {
  line = trimmed(line);
  if (line.empty() || line.front() != '#') {
    return 0;
  }
  return words_of(line.substr(1), tokens);
}

bool is_name(std::string_view word, std::string_view name) {
  if (word.size() != name.size()) {
    return false;
  }
  for (std::size_t i = 0; i < word.size(); ++i) {
    if (lower(word[i]) != name[i]) {
      return false;
    }
  }
  return true;
}

/// "20250822" and "16:46:12".
std::optional<std::int64_t> day_and_time(std::string_view day, std::string_view time) {
  if (day.size() != 8 || time.size() < 8) {
    return std::nullopt;
  }
  const std::string text = std::string(day.substr(0, 4)) + "-" + std::string(day.substr(4, 2)) + "-" +
                           std::string(day.substr(6, 2)) + " " + std::string(time);
  std::string_view rest = text;
  return take_date_time(rest);
}

/// "# gpu    pwr  gtemp ..."
bool is_header(std::string_view line) {
  Tokens words;
  const std::size_t count = header_words(line, words);
  bool gpu = false;
  bool measures = false;
  for (std::size_t i = 0; i < count; ++i) {
    gpu = gpu || is_name(words[i], "gpu");
    measures = measures || is_name(words[i], "sm") || is_name(words[i], "pwr") || is_name(words[i], "fb") ||
               is_name(words[i], "pclk");
  }
  return gpu && measures;
}

class DmonReader {
 public:
  DmonReader(GpuLog& log, const Window& window) : log_(log), window_(window) {}

  void read(std::string_view line) {
    line = trimmed(line);
    if (line.empty()) {
      return;
    }
    if (detail::is_complaint(line)) {
      detail::complain(line, log_);
      return;
    }
    if (line.front() == '#') {
      if (is_header(line)) {
        header_.assign(line);
        columns_ = header_words(header_, names_);
        refuse_processes();
      }
      return;
    }
    Tokens cells;
    if (columns_ == 0 || words_of(line, cells) != columns_ || !row(cells)) {
      ++log_.broken_lines;
    }
  }

 private:
  /// Throws for nvidia-smi pmon, whose rows are processes.
  void refuse_processes() const {
    for (std::size_t i = 0; i < columns_; ++i) {
      if (is_name(names_[i], "pid")) {
        throw Error(ErrorCode::kInput, log_.file, "was written by nvidia-smi pmon, which lists processes, not GPUs",
                    "use nvidia-smi dmon, or --query-gpu=timestamp,index,utilization.gpu,memory.used,memory.total "
                    "--format=csv -l 1");
      }
    }
  }

  bool row(const Tokens& cells) {
    GpuSample sample;
    std::string_view day;
    std::string_view time;
    for (std::size_t i = 0; i < columns_; ++i) {
      const auto number = detail::whole_number(cells[i]);
      if (is_name(names_[i], "gpu")) {
        if (!number) {
          return false;
        }
        sample.id = cells[i];
      } else if (is_name(names_[i], "date")) {
        day = cells[i];
      } else if (is_name(names_[i], "time")) {
        time = cells[i];
      } else if (number) {
        fill(sample, names_[i], *number);
      } else if (cells[i] != "-") {
        return false;
      }
    }
    sample.t_ns = day_and_time(day, time);
    if (sample.utilisation.value_or(0) > 1.0001 || sample.utilisation.value_or(0) < 0) {
      return false;
    }
    if (window_.contains(sample.t_ns)) {
      log_.add(sample);
    }
    return true;
  }

  static void fill(GpuSample& sample, std::string_view name, double value) {
    if (is_name(name, "sm")) {
      sample.utilisation = value / 100;
    } else if (is_name(name, "mem")) {
      sample.memory_utilisation = value / 100;
    } else if (is_name(name, "pwr")) {
      sample.power_w = value;
    } else if (is_name(name, "gtemp") || is_name(name, "temp")) {
      sample.temperature_c = value;
    } else if (is_name(name, "pclk")) {
      sample.sm_mhz = value;
    } else if (is_name(name, "fb")) {
      sample.memory_used = value * 1048576.0;
    } else if (is_name(name, "tviol")) {
      sample.throttled = value > 0;
    }
  }

  GpuLog& log_;
  const Window& window_;
  std::string header_;  // names_ points into it
  Tokens names_;
  std::size_t columns_ = 0;
};

bool is_dmon(std::string_view head) { return detail::any_line(head, is_header); }

GpuLog read_dmon(Source& source, const Window& window) {
  return detail::read_gpu_lines<DmonReader>(source, window, "rows of nvidia-smi dmon");
}

}  // namespace

const GpuFormat& nvidia_smi_dmon() {
  static const GpuFormat kFormat = {"nvidia-smi dmon", is_dmon, read_dmon};
  return kFormat;
}

}  // namespace unidle::logs::gpu_formats
