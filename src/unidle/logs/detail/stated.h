// What a program itself states about its steps: their time, the wait for data in it, rates.
#pragma once

#include <map>
#include <optional>

#include "unidle/logs/detail/counters.h"
#include "unidle/logs/detail/failures.h"
#include "unidle/logs/detail/meters.h"
#include "unidle/logs/text_log.h"

namespace unidle::logs::detail {

/// Reads all lines. A line stands for the steps since the previous line that stated something.
/// Not thread-safe.
class Stated {
 public:
  /// `training`: the line is of training; of others only the batch is read.
  void read(const LogLine& line, const Counters::News& news, bool training);
  StatedSteps result() const;

 private:
  /// A mean over steps. The first reading is left out once others follow.
  class Mean {
   public:
    void add(double value, double steps);
    std::optional<double> value() const;

   private:
    std::optional<double> first_;
    double sum_ = 0;
    double steps_ = 0;
  };
  /// The median by steps, within 0.5 %. A mean would include the pauses for validation that single readings have.
  class Middle {
   public:
    void add(double value, double steps);  // REQUIRES: both > 0
    std::optional<double> value() const;

   private:
    struct Bin {
      double steps = 0;
      double sum = 0;
    };
    std::map<int, Bin> bins_;  // by the logarithm
  };
  /// A rate. Lines that report progress as well are preferred: others may be of one rank or of another loop.
  struct Rate {
    Middle with_progress;
    Middle alone;
    void add(const std::optional<double>& rate, bool tells_progress, double steps);
    std::optional<double> value() const;
  };
  /// What one line tells of the time of its steps.
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
  Middle step_s_;            // of the lines that tell of some steps alone
  Mean each_step_s_;         // the same, where each step has a line
  bool leaves_out_ = false;  // some steps have none
  Mean averaged_step_s_;     // of those with averages over all
  Mean fed_step_s_;          // of those that tell the wait for data too
  Mean data_s_;
  Mean batch_;
  Rate samples_per_s_;
  Rate steps_per_s_;
  Rate tokens_per_s_;

  std::optional<double> count_;  // of the line before
  double first_is_ = 0;          // 1 where the first step is called 0
  double steps_ = 1;             // that this line stands for, or samples
  double weight_ = 1;            // the same; of a line that repeats a count, that of the line before
  bool counts_steps_ = true;
  double epoch_steps_ = 0;   // that the averages before were over
  double epoch_step_s_ = 0;  // in all
  double epoch_data_s_ = 0;
};

}  // namespace unidle::logs::detail
