// Whether a faster trial still trains the same thing.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "unidle/tune/trials/trial.h"

namespace unidle::tune {

/// How far results at equal samples may lie apart.
///
/// Loss of exact changes: the arithmetic is the same, but sums may be associated in another order (thread counts,
/// algorithms), and training amplifies that from step to step. 2 % is several times what repeated runs with different
/// thread counts show after a few hundred steps, and far below what a wrong sample order or a lost update causes.
/// Loss of numeric changes: 16-bit rounding adds noise; published bf16 runs stay within 5 % of fp32 at equal samples.
/// Metrics: 0.1 dB for PSNR, the difference that super-resolution papers call visible; 2 % relative otherwise.
struct ParityBands {
  double exact_loss = 0.02;
  double numeric_loss = 0.05;
  /// Where samples are drawn at random in another order (augmentation in other processes), and where weights or draws
  /// are not seeded, losses differ by chance: what lies within so many standard errors, of the step-by-step differences
  /// and of how far runs of the program as it is lie apart, is no breach. Neighbouring steps share
  /// the drift that the first differences started, so that their standard error is too small by up to a factor of two.
  double loss_errors = 4;
  double psnr_db = 0.1;
  double metric = 0.02;
};

struct Parity {
  bool held = true;
  std::string why;  // what broke it, with numbers; empty when held
};

/// How far runs of one setting lie apart by themselves, as standard deviations: nothing of a program that repeats
/// itself, and where fewer than two runs tell.
struct Spread {
  double loss = 0;
  std::map<std::string, double> metrics;

  /// Standard errors of the difference of two means, of so many runs each.
  Spread of_difference(std::size_t before, std::size_t after) const;
};
Spread spread_of(const std::vector<TrialResult>& runs);
/// The runs came to the same losses and metrics, but for rounding.
bool agree(const std::vector<TrialResult>& runs);

/// Losses and metrics of several runs of the same settings. Where some have none, none. REQUIRES: not empty.
TrialResult averaged(const std::vector<TrialResult>& runs);

/// `changed` ran with `changes` on top of what `baseline` ran with. What neither reports is not compared.
/// A lower loss or a better metric is no breach for numeric changes; for exact ones any difference beyond the band is.
/// `chance`: how far the two may differ without any change, Spread::of_difference; it widens every band.
Parity check_parity(const TrialResult& baseline, const TrialResult& changed, const knobs::Settings& changes,
                    const ParityBands& bands = {}, const Spread& chance = {});

/// True for metrics that are better when larger (psnr, accuracy, auc); by name.
bool larger_is_better(const std::string& metric);

}  // namespace unidle::tune
