// Host and device series, read while the run trains.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "unidle/account/timeline.h"

namespace unidle::account {

/// Keeps references to both arguments.
class Readings {
 public:
  Readings(const RunData& run, const Timeline& timeline) : run_(run), timeline_(timeline) {}

  /// Readings after warm-up while steps run; without `subject`, those of the first series with that name.
  std::vector<double> training(std::string_view name, const std::string* subject = nullptr) const;
  std::optional<double> mean(std::string_view name, const std::string* subject = nullptr) const;
  std::optional<double> most(std::string_view name, const std::string* subject = nullptr) const;
  /// Subjects with a series of that name.
  std::vector<std::string> subjects(std::string_view name) const;

 private:
  const std::vector<record::Point>* find(std::string_view name, const std::string* subject) const;

  const RunData& run_;
  const Timeline& timeline_;
};

/// Over the whole run, including start-up, and all subjects.
std::optional<double> mean_over_run(const RunData& run, std::string_view name);
std::optional<double> max_over_run(const RunData& run, std::string_view name);

}  // namespace unidle::account
