// Series of the host and the device, over the time that training takes.
#pragma once

#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "unidle/diagnose/detail/timeline.h"
#include "unidle/diagnose/signals.h"
#include "unidle/language/language.h"
#include "unidle/record/record.h"

namespace unidle::diagnose::detail {

/// All series of a record, each read once when it is asked for. Keeps references to both.
class Readings {
 public:
  Readings(const record::Reader& reader, const Timeline& timeline)
      : reader_(reader), timeline_(timeline), series_(reader.all_series()) {}

  /// Readings after warm-up while steps run; the first series of that name where `subject` is null.
  std::vector<double> training(std::string_view name, const std::string* subject = nullptr) const;
  std::optional<double> mean(std::string_view name, const std::string* subject = nullptr) const;
  std::optional<double> most(std::string_view name, const std::string* subject = nullptr) const;
  /// The largest of the whole run.
  std::optional<double> most_ever(std::string_view name) const;
  /// Subjects that have a series of that name.
  std::vector<std::string> subjects(std::string_view name) const;

 private:
  const record::Series* find(std::string_view name, const std::string* subject) const;

  const record::Reader& reader_;
  const Timeline& timeline_;
  std::vector<record::Series> series_;
};

/// CPUs, memory and storage. Needs the host's facts to be read before.
void read_host_series(const record::Reader& reader, const Readings& readings, Signals& signals);
/// Of the run's own GPU, see own_gpus.h; `process` is the one that trains.
void read_gpu_series(const record::Reader& reader, const Readings& readings, std::optional<std::int64_t> process,
                     Language language, Signals& signals);

/// Of `run --kernels`: truer than NVML's "some kernel ran". Without such series nothing changes.
void read_kernel_series(const Readings& readings, Language language, Signals& signals);

}  // namespace unidle::diagnose::detail
