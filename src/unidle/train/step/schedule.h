// Learning rate schedules.
#pragma once

#include <cstdint>

namespace unidle::train {

class Config;

/// The learning rate as a function of the step alone, so that resuming needs no state. Formulas as in
/// torch.optim.lr_scheduler. Immutable.
class Schedule {
 public:
  enum class Kind {
    kConstant,
    kCosine,    // CosineAnnealingLR down to zero at the end of the run
    kStep,      // StepLR: times `decay_factor` every `decay_steps`
    kOneCycle,  // OneCycleLR: up from 1/25 over the first 30 %, then down to 1/250,000, both along a cosine
  };
  struct Options {
    Kind kind = Kind::kConstant;
    double rate = 0;
    std::int64_t warmup_steps = 0;  // the rate first rises linearly over this many steps
    std::int64_t total_steps = 1;
    std::int64_t decay_steps = 1;
    double decay_factor = 1;
  };
  explicit Schedule(const Options& options) : options_(options) {}
  /// The configured schedule for a run of `total_steps`.
  Schedule(const Config& config, std::int64_t total_steps);

  /// `step` counts from 0.
  double rate(std::int64_t step) const;
  const Options& options() const { return options_; }

 private:
  double one_cycle(double step) const;

  Options options_;
};

}  // namespace unidle::train
