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
  /// Removes from the trial's changes those that the live program refused or has with another value, and notes it in
  /// the trial's reason. Changes that the program does not report stay: unconfirmed, but not contradicted.
  void take_out(LoggedTrial& trial);
  bool contain(const std::string& knob, const knobs::Value& value) const;
  /// One sentence per refusal.
  const std::vector<std::string>& sentences() const { return sentences_; }

 private:
  void add(const std::string& asked, std::string sentence);

  std::set<std::string> refused_;  // "knob=value"
  std::vector<std::string> sentences_;
};

}  // namespace unidle::tune
