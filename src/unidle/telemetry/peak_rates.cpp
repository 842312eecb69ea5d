#include "unidle/telemetry/peak_rates.h"

#include <array>

namespace unidle::telemetry {

namespace {

struct Sheet {
  std::string_view words;  // separated by blanks; a device's name must contain all of them
  PeakRates rates;
};

/// From the makers' data sheets. Where a sheet has only the rates with sparsity, they are halved. The first row whose
/// words are all in the name counts, so variants come before their family.
constexpr std::array kSheets = {
    Sheet{"GB200", {2500, 1250, 80}},
    Sheet{"B200", {2250, 1100, 75}},
    Sheet{"H200 NVL", {835.5, 417.5, 60}},
    Sheet{"GH200", {989.4, 494.7, 66.9}},
    Sheet{"H200", {989.4, 494.7, 66.9}},
    Sheet{"H100 NVL", {835.5, 417.5, 60}},
    Sheet{"H100 PCIe", {756, 378, 51.2}},
    Sheet{"H100", {989.4, 494.7, 66.9}},
    Sheet{"H800 PCIe", {756, 378, 51.2}},
    Sheet{"H800", {989.4, 494.7, 66.9}},
    Sheet{"H20", {148, 74, 44}},
    Sheet{"A100", {312, 156, 19.5}},
    Sheet{"A800", {312, 156, 19.5}},
    Sheet{"A30", {165, 82, 10.3}},
    Sheet{"A40", {149.7, 74.8, 37.4}},
    Sheet{"A6000", {154.8, 77.4, 38.7}},
    Sheet{"A10", {125, 62.5, 31.2}},
    Sheet{"L40S", {362.05, 183, 91.6}},
    Sheet{"L40", {181.05, 90.5, 90.5}},
    Sheet{"L4", {121, 60, 30.3}},
    Sheet{"V100 PCIE", {112, 0, 14}},
    Sheet{"V100", {125, 0, 15.7}},
    Sheet{"T4", {65, 0, 8.1}},
    Sheet{"RTX 5090", {209.5, 104.8, 104.8}},
    Sheet{"RTX 4090", {165.2, 82.6, 82.6}},
    Sheet{"RTX 3090 Ti", {80, 40, 40}},
    Sheet{"RTX 3090", {71, 35.6, 35.6}},
    Sheet{"MI300X", {1307.4, 653.7, 163.4}},
    Sheet{"MI250X", {191.5, 0, 23.95}},  // of one of its two dies, each of which is a device
    Sheet{"MI210", {181, 0, 22.6}},
};

bool is_separator(char letter) { return letter == ' ' || letter == '-' || letter == '_'; }

/// Whether `word` is one of the words of `name`.
bool has_word(std::string_view name, std::string_view word) {
  for (std::size_t at = name.find(word); at != std::string_view::npos; at = name.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    if ((at == 0 || is_separator(name[at - 1])) && (end == name.size() || is_separator(name[end]))) {
      return true;
    }
  }
  return false;
}

bool has_words(std::string_view name, std::string_view words) {
  while (!words.empty()) {
    const std::size_t end = words.find(' ');
    if (!has_word(name, words.substr(0, end))) {
      return false;
    }
    words = end == std::string_view::npos ? std::string_view() : words.substr(end + 1);
  }
  return true;
}

}  // namespace

std::optional<PeakRates> peak_rates(std::string_view name) {
  for (const Sheet& sheet : kSheets) {
    if (has_words(name, sheet.words)) {
      return sheet.rates;
    }
  }
  return std::nullopt;
}

}  // namespace unidle::telemetry
