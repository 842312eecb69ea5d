// nvidia-smi -q in a loop (-l): one page of "Name : value" in sections per round, with a part for each GPU.
#include <array>

#include "unidle/base/characters.h"
#include "unidle/logs/detail/gpu_columns.h"
#include "unidle/logs/detail/gpu_lines.h"
#include "unidle/logs/detail/numbers.h"
#include "unidle/logs/gpu_format.h"
#include "unidle/logs/timestamp.h"

namespace unidle::logs::gpu_formats {

namespace {

constexpr std::string_view kPage = "==NVSMI LOG==";

/// A line of a section; drivers have renamed some of them.
struct Entry {
  std::string_view section;
  std::string_view name;
  std::optional<double> GpuSample::*reading;
};
constexpr std::array kEntries = {
    Entry{"Utilization", "Gpu", &GpuSample::utilisation},
    Entry{"Utilization", "GPU", &GpuSample::utilisation},
    Entry{"Utilization", "Memory", &GpuSample::memory_utilisation},
    Entry{"FB Memory Usage", "Total", &GpuSample::memory_total},
    Entry{"FB Memory Usage", "Used", &GpuSample::memory_used},
    Entry{"FB Memory Usage", "Free", &GpuSample::memory_free},
    Entry{"Power Readings", "Power Draw", &GpuSample::power_w},
    Entry{"Power Readings", "Power Limit", &GpuSample::power_limit_w},
    Entry{"GPU Power Readings", "Power Draw", &GpuSample::power_w},
    Entry{"GPU Power Readings", "Instantaneous Power Draw", &GpuSample::power_w},
    Entry{"GPU Power Readings", "Current Power Limit", &GpuSample::power_limit_w},
    Entry{"Temperature", "GPU Current Temp", &GpuSample::temperature_c},
    Entry{"Clocks", "SM", &GpuSample::sm_mhz},
    Entry{"Max Clocks", "SM", &GpuSample::sm_mhz_most},
};

class PagesReader {
 public:
  PagesReader(GpuLog& log, const Window& window) : log_(log), window_(window) {}

  void read(std::string_view line) {
    if (detail::is_complaint(line)) {
      detail::complain(trimmed(line), log_);
      return;
    }
    if (line.find(kPage) != std::string_view::npos) {
      finish();
      t_ns_.reset();
      return;
    }
    const std::string_view text = trimmed(line);
    const std::size_t colon = text.find(" : ");
    if (colon != std::string_view::npos) {
      entry(trimmed(text.substr(0, colon)), trimmed(text.substr(colon + 3)));
    } else if (line.starts_with("GPU ")) {  // "GPU 00000000:01:00.0"
      finish();
      id_.assign(trimmed(line.substr(4)));
    } else if (!text.empty()) {
      section_.assign(text);
    }
  }

  /// The section of the current GPU is complete.
  void finish() {
    sample_.id = id_;
    sample_.name = name_;
    sample_.t_ns = t_ns_;
    if (!id_.empty() && told_ && window_.contains(t_ns_)) {
      log_.add(sample_);
    }
    sample_ = {};
    id_.clear();
    name_.clear();
    section_.clear();
    told_ = false;
  }

 private:
  void entry(std::string_view name, std::string_view value) {
    if (name == "Timestamp") {
      std::string_view rest = value;
      t_ns_ = take_unix_date(rest);
    } else if (name == "Product Name") {
      name_.assign(value);
    } else {
      for (const Entry& one : kEntries) {
        if (one.section == section_ && one.name == name) {
          reading(value, sample_.*one.reading);
        }
      }
    }
  }

  void reading(std::string_view value, std::optional<double>& into) {
    std::string_view unit;
    const auto number = detail::cell_number(value, unit);
    const double scale = detail::unit_scale(unit);
    if (number && *number >= 0 && scale > 0) {
      into = *number * scale;
      told_ = true;
    }
  }

  GpuLog& log_;
  const Window& window_;
  GpuSample sample_;
  std::string id_;
  std::string name_;
  std::string section_;
  std::optional<std::int64_t> t_ns_;
  bool told_ = false;
};

/// Whether the text starts with a page and consists almost entirely of pages: a run may print one and then train.
bool is_pages(std::string_view head) {
  Source source("", head);
  Lines lines(source);
  std::string_view line;
  int of_pages = 0;
  int others = 0;
  while (lines.next(line)) {
    if (trimmed(line).empty()) {
      continue;
    }
    const bool page = line.find(kPage) != std::string_view::npos;
    if (of_pages == 0 && !page) {
      return false;
    }
    const bool fits = page || is_blank(line.front()) || line.starts_with("GPU ") ||
                      line.find(" : ") != std::string_view::npos || detail::is_complaint(line);
    (fits ? of_pages : others) += 1;
  }
  return of_pages > 20 * others;
}

GpuLog read_pages(Source& source, const Window& window) {
  return detail::read_gpu_lines<PagesReader>(source, window, "pages of nvidia-smi -q with utilisation in them");
}

}  // namespace

const GpuFormat& nvidia_smi_q() {
  static const GpuFormat kFormat = {"nvidia-smi -q", is_pages, read_pages};
  return kFormat;
}

}  // namespace unidle::logs::gpu_formats
