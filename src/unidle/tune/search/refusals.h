// Requested values that a program did not accept.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "unidle/tune/search/trial_log.h"

namespace unidle::tune {

/// Not thread-safe.
class Refusals {
 public:
  /// Takes out of the trial's changes what the live program refused, or has another value of, and says so in its
  /// reason. What it does not speak of stays: not confirmed, but not contradicted either.
  void take_out(LoggedTrial& trial);
  bool contain(const std::string& knob, const knobs::Value& value) const;
  /// One sentence for each.
  const std::vector<std::string>& sentences() const { return sentences_; }

 private:
  void add(const std::string& asked, std::string sentence);

  std::set<std::string> refused_;  // "knob=value"
  std::vector<std::string> sentences_;
};

}  // namespace unidle::tune
