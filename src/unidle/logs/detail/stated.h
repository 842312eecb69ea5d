// Reads what a program states about its steps: their time, their wait for data, rates.
#pragma once

#include <map>
#include <optional>

#include "unidle/logs/detail/counters.h"
#include "unidle/logs/detail/failures.h"
#include "unidle/logs/detail/meters.h"
#include "unidle/logs/text_log.h"

namespace unidle::logs::detail {

/// Whether the line has an average over the training so far, which it may state beside a result of validation.
bool averages_training(const LogLine& line);

/// Reads all lines. A line stands for the steps since the previous line with a statement. Not thread-safe.
class Stated {
 public:
  /// `training`: the line is about training; only the batch size is read from other lines.
  void read(const LogLine& line, const Counters::News& news, bool training);
  StatedSteps result() const;

 private:
  /// A mean over steps. Drops the first reading once others follow.
  class Mean {
   public:
    void add(double value, double steps);
    std::optional<double> value() const;

   private:
    std::optional<double> first_;
    double sum_ = 0;
    double steps_ = 0;
  };
  /// The median over steps, within 0.5 %. A mean would include pauses for validation, which single readings contain.
  class Middle {
   public:
    void add(double value, double steps);  // REQUIRES: both > 0
    std::optional<double> value() const;

   private:
    struct Bin {
      double steps = 0;
      double sum = 0;
    };
    std::map<int, Bin> bins_;  // by logarithm
  };
  /// A rate. Lines that also report progress are preferred: others may be from one rank or another loop.
  struct Rate {
    Middle with_progress;
    Middle alone;
    void add(const std::optional<double>& rate, bool tells_progress, double steps);
    std::optional<double> value() const;
  };
  /// The step times in one line.
  struct Times {
    double step_s = 0;
    std::optional<double> data_s;
    bool averages = false;  // over all steps of the epoch so far
    std::optional<double> batch;
  };
  struct Rates {
    std::optional<double> samples;
    std::optional<double> steps;
    std::optional<double> tokens;
    bool tokens_per_device = false;
  };
  static std::optional<Meter> step_in(const LogLine& line, const std::optional<Meter>& data);
  static std::optional<Times> times_in(const LogLine& line);
  static Rates rates_in(const LogLine& line, const Counters::News& news);
  static std::optional<double> batch_in(const LogLine& line);
  void move_to(std::optional<double> count);
  Times since_last(const Times& averages);
  void add_times(const LogLine& line, Times times);
  void add_rates(const Rates& rates, bool tells_progress);

  StatedSteps stated_;
  Middle step_s_;            // from lines about their own steps only
  Mean each_step_s_;         // the same as a mean, used if each step has a line
  bool leaves_out_ = false;  // some steps have no line
  Mean averaged_step_s_;     // from lines with averages over all steps
  Mean fed_step_s_;          // from lines that also have the wait for data
  Mean data_s_;
  Mean batch_;
  Rate samples_per_s_;
  Rate steps_per_s_;
  Rate tokens_per_s_;

  std::optional<double> count_;  // count in the previous line
  double first_is_ = 0;          // 1 if the first step has number 0
  double steps_ = 1;             // steps, or samples, that this line stands for
  double weight_ = 1;            // the same; for a repeated count, that of the previous line
  bool counts_steps_ = true;
  double epoch_steps_ = 0;   // steps in the previous averages
  double epoch_step_s_ = 0;  // their total time
  double epoch_data_s_ = 0;
};

}  // namespace unidle::logs::detail
