#include "unidle/diagnose/run_time.h"

#include <algorithm>
#include <array>

namespace unidle::diagnose {

std::span<const std::string_view> run_time_knobs() {
  static constexpr std::array<std::string_view, 17> kKnobs = {"loader.workers",
                                                              "loader.pin_memory",
                                                              "loader.prefetch_factor",
                                                              "loader.persistent_workers",
                                                              "loader.gather",
                                                              "transfer.non_blocking",
                                                              "cache.features",
                                                              "precision.amp",
                                                              "precision.tf32",
                                                              "compile.mode",
                                                              "layout.channels_last",
                                                              "cudnn.benchmark",
                                                              "optimizer.fused",
                                                              "optimizer.zero_to_none",
                                                              "cpu.threads",
                                                              "metrics.interval",
                                                              "validation.every"};
  return kKnobs;
}

bool applies_at_run_time(std::string_view knob) {
  const auto knobs = run_time_knobs();
  return std::find(knobs.begin(), knobs.end(), knob) != knobs.end();
}

}  // namespace unidle::diagnose
