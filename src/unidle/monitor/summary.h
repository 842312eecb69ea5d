// Summary of a session: figures per device, and a verdict in one sentence.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "unidle/language/translator.h"
#include "unidle/monitor/distribution.h"
#include "unidle/monitor/snapshot.h"

namespace unidle::monitor {

class Summary {
 public:
  void add(const Snapshot& snapshot);

  std::string to_text(int width, Language language = Language::kEnglish) const;
  /// {"type": "summary", "seconds", "samples", "cpu": {...}, "gpus": [...], "run": {...}, "verdict"}; a figure is
  /// {"mean", "p5", "p50", "p95", "peak"}, or null without a reading.
  nlohmann::json to_json() const;
  /// One sentence: what the device did, and what to do next.
  std::string verdict(Language language = Language::kEnglish) const;

 private:
  struct Gpu {
    std::string name;
    std::map<std::string, Distribution> figures;  // by name
    std::optional<double> first_energy_j, last_energy_j;
    double integrated_j = 0;  // power integrated over time, for devices without an energy counter
    std::uint64_t xids = 0;
    bool throttled = false;
    bool mig = false;
  };

  /// Of the watched processes once there are some, otherwise of the machine.
  void add_cpu(const Snapshot& snapshot);
  std::optional<double> energy_j(const Gpu& gpu) const;
  std::string gpu_verdict(const Translator& translator) const;
  std::string cpu_verdict(const Translator& translator) const;
  std::string advice(const Translator& translator) const;

  std::vector<std::string> order_;  // of the devices
  std::map<std::string, Gpu> gpus_;
  bool gpus_known_ = true;
  Distribution cpu_share_, cpu_used_, steps_per_s_, samples_per_s_, input_share_;
  double cpus_ = 0;
  bool tree_ = false;
  std::int64_t first_ns_ = 0;
  std::int64_t last_ns_ = 0;
  std::uint64_t samples_ = 0;
};

}  // namespace unidle::monitor
