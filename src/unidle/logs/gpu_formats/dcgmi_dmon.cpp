// dcgmi dmon, of NVIDIA's Data Center GPU Manager. It prints one row per entity, and a header with the short names of
// the requested fields. Profiling fields (names that end in ACT) are 0..1, GPUTL and MCUTL are percentages.
#include <algorithm>
#include <string>

#include "unidle/base/characters.h"
#include "unidle/base/split.h"
#include "unidle/logs/detail/gpu_lines.h"
#include "unidle/logs/detail/numbers.h"
#include "unidle/logs/gpu_format.h"

namespace unidle::logs::gpu_formats {

namespace {

constexpr double kMiB = 1048576;

using NameList = std::vector<std::string_view>;

/// GPUTL, SMACT, F16AC
bool is_short_name(std::string_view word) {
  return std::all_of(word.begin(), word.end(), [](char c) { return is_digit(c) || (c >= 'A' && c <= 'Z'); });
}

/// "#Entity   GPUTL   SMACT": the names after the first word; empty if the line is not a header.
NameList names_in(std::string_view line) {
  NameList words = split_words(line);
  if (words.size() < 2 || (words[0] != "#Entity" && words[0] != "#")) {
    return {};
  }
  const bool apart = words[0] == "#";  // "# Entity"
  if (apart && words[1] != "Entity") {
    return {};
  }
  words.erase(words.begin(), words.begin() + (apart ? 2 : 1));
  return std::all_of(words.begin(), words.end(), is_short_name) ? words : NameList();
}

void fill_dcgmi(GpuSample& sample, std::string_view name, double value) {
  if (name == "GPUTL") {
    sample.utilisation = value / 100;
  } else if ((name == "GRACT" || name == "SMACT") && !sample.utilisation) {
    sample.utilisation = value;  // GPUTL was not requested
  } else if (name == "MCUTL") {
    sample.memory_utilisation = value / 100;
  } else if (name == "POWER") {
    sample.power_w = value;
  } else if (name == "PMLMT") {
    sample.power_limit_w = value;
  } else if (name == "TMPTR") {
    sample.temperature_c = value;
  } else if (name == "SMCLK") {
    sample.sm_mhz = value;
  } else if (name == "FBUSD") {
    sample.memory_used = value * kMiB;
  } else if (name == "FBTTL") {
    sample.memory_total = value * kMiB;
  }
}

class DcgmiReader {
 public:
  DcgmiReader(GpuLog& log, const Window&) : log_(log) {}  // its rows have no times

  void read(std::string_view line) {
    const NameList header = names_in(line);
    if (!header.empty()) {
      names_.assign(header.begin(), header.end());
      return;
    }
    const NameList words = split_words(line);
    if (words.size() < 2) {
      return;  // "ID", below the header
    }
    if (words[0] != "GPU") {
      log_.broken_lines += names_.empty() ? 0 : 1;  // a partition (GPU-I, GPU-CI), a switch, or a message
      return;
    }
    if (words.size() != names_.size() + 2 || !row(words)) {
      ++log_.broken_lines;
    }
  }

 private:
  bool row(const NameList& words) {
    GpuSample sample;
    sample.id = words[1];
    for (std::size_t i = 0; i < names_.size(); ++i) {
      if (const auto number = detail::whole_number(words[i + 2])) {
        fill_dcgmi(sample, names_[i], *number);
      } else if (words[i + 2] != "N/A") {
        return false;
      }
    }
    if (sample.utilisation.value_or(0) < 0 || sample.utilisation.value_or(0) > 1.0001) {
      return false;
    }
    log_.add(sample);
    return true;
  }

  GpuLog& log_;
  std::vector<std::string> names_;
};

bool is_dcgmi(std::string_view head) {
  return detail::any_line(head, [](std::string_view line) { return !names_in(line).empty(); });
}

GpuLog read_dcgmi(Source& source, const Window& window) {
  return detail::read_gpu_lines<DcgmiReader>(source, window, "rows of dcgmi dmon");
}

}  // namespace

const GpuFormat& dcgmi_dmon() {
  static const GpuFormat kFormat = {"dcgmi dmon", is_dcgmi, read_dcgmi};
  return kFormat;
}

}  // namespace unidle::logs::gpu_formats
