#include "unidle/telemetry/peak_rates.h"

#include <algorithm>
#include <array>
#include <vector>

namespace unidle::telemetry {

namespace {

struct Sheet {
  std::string_view words;  // separated by blanks; a device's name must contain all of them
  PeakRates rates;
};

/// From the makers' data sheets. Where a sheet has only the rates with sparsity, they are halved. The first row whose
/// words are all in the name counts, so variants come before their family.
constexpr std::array kSheets = {
    // NVIDIA, data sheets "GB200 NVL72" and "HGX B200", "HGX B300": sums of 2 and 8 devices.
    Sheet{"GB200", {2500, 1250, 80}},
    Sheet{"B200", {2250, 1125, 75}},
    Sheet{"B300", {2250, 1125, 75}},
    // NVIDIA, data sheets "H100 Tensor Core GPU", "H100 NVL", "H200 Tensor Core GPU", "GH200 Grace Hopper Superchip".
    // The H800 computes like the H100 in fp32 and below. Only the card for PCIe has HBM2e.
    Sheet{"H200 NVL", {835.5, 417.5, 60}},
    Sheet{"GH200", {989.4, 494.7, 66.9}},
    Sheet{"H200", {989.4, 494.7, 66.9}},
    Sheet{"H100 NVL", {835.5, 417.5, 60}},
    Sheet{"H100 PCIe", {756, 378, 51.2}},
    Sheet{"H100 HBM2e", {756, 378, 51.2}},
    Sheet{"H100", {989.4, 494.7, 66.9}},
    Sheet{"H800 PCIe", {756, 378, 51.2}},
    Sheet{"H800 HBM2e", {756, 378, 51.2}},
    Sheet{"H800", {989.4, 494.7, 66.9}},
    Sheet{"H20", {148, 74, 44}},
    // NVIDIA, data sheets "A100 Tensor Core GPU", "A800", "A30", "A40", "RTX A6000", "A10".
    Sheet{"A100", {312, 156, 19.5}},
    Sheet{"A800", {312, 156, 19.5}},
    Sheet{"A30", {165, 82, 10.3}},
    Sheet{"A40", {149.7, 74.8, 37.4}},
    Sheet{"RTX A6000", {154.8, 77.4, 38.7}},
    Sheet{"A10", {125, 62.5, 31.2}},
    // NVIDIA, data sheets "L40S", "L40", "L4".
    Sheet{"L40S", {362.05, 183, 91.6}},
    Sheet{"L40", {181.05, 90.5, 90.5}},
    Sheet{"L4", {121, 60, 30.3}},
    // NVIDIA, data sheets "V100" and "T4": their matrix units know fp16 only.
    Sheet{"V100S PCIE", {130, 0, 16.4, false}},
    Sheet{"V100 PCIE", {112, 0, 14, false}},
    Sheet{"V100 SXM2", {125, 0, 15.7, false}},
    Sheet{"V100 SXM3", {125, 0, 15.7, false}},
    Sheet{"T4", {65, 0, 8.1, false}},
    // NVIDIA, architecture papers "RTX Blackwell", "Ada" and "Ampere GA102": the rates with fp32 accumulation.
    Sheet{"RTX 5090", {209.5, 104.8, 104.8}},
    Sheet{"RTX 4090", {165.2, 82.6, 82.6}},
    Sheet{"RTX 3090 Ti", {80, 40, 40}},
    Sheet{"RTX 3090", {71, 35.6, 35.6}},
    // AMD, data sheets "Instinct MI325X", "MI300X", "MI300A": fp32 has the same rate on all units.
    Sheet{"MI325X", {1307.4, 653.7, 163.4}},
    Sheet{"MI300X", {1307.4, 653.7, 163.4}},
    Sheet{"MI300A", {980.6, 490.3, 122.6}},
    // AMD, data sheets "Instinct MI250X", "MI250", "MI210": fp32 is that of the matrix units (95.7, 90.5 and 45.3). The
    // first two are two devices each, of which each computes half.
    Sheet{"MI250X", {191.5, 0, 47.85}},
    Sheet{"MI250", {181.05, 0, 45.25}},
    Sheet{"MI210", {181, 0, 45.3}},
};

/// Words that change no rate, beside those of the row. An A100 of 64 GB is another one, of one supercomputer.
constexpr auto kPlainWords = std::to_array<std::string_view>(
    {"NVIDIA", "Tesla", "GeForce", "AMD",  "Instinct", "SXM",   "SXM2", "SXM3",  "SXM4",  "SXM5", "SXM6",
     "AC",     "OAM",   "PCIe",    "PCIE", "HBM2",     "HBM2e", "HBM3", "HBM3e", "16GB",  "24GB", "32GB",
     "40GB",   "48GB",  "80GB",    "94GB", "96GB",     "120GB", "144G", "141GB", "144GB", "480GB"});

bool is_separator(char letter) { return letter == ' ' || letter == '-' || letter == '_'; }

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const auto end = std::ranges::find_if(text, is_separator);
    const auto size = static_cast<std::size_t>(end - text.begin());
    if (size > 0) {
      words.push_back(text.substr(0, size));
    }
    text.remove_prefix(std::min(size + 1, text.size()));
  }
  return words;
}

bool has(const auto& words, std::string_view word) { return std::ranges::find(words, word) != std::end(words); }

}  // namespace

std::optional<PeakRates> peak_rates(std::string_view name) {
  const std::vector<std::string_view> words = words_of(name);
  for (const Sheet& sheet : kSheets) {
    const std::vector<std::string_view> wanted = words_of(sheet.words);
    if (std::ranges::all_of(wanted, [&](std::string_view word) { return has(words, word); })) {
      const bool plain = std::ranges::all_of(
          words, [&](std::string_view word) { return has(wanted, word) || has(kPlainWords, word); });
      return plain ? std::optional(sheet.rates) : std::nullopt;
    }
  }
  return std::nullopt;
}

}  // namespace unidle::telemetry
