// Turns host and device series, read while training, into signals.
#pragma once

#include "unidle/account/account.h"
#include "unidle/diagnose/signals.h"
#include "unidle/language/language.h"

namespace unidle::diagnose::detail {

using account::Readings;

/// Memory, storage, threads and processes.
void read_host_series(const account::RunData& run, const Readings& readings, Signals& signals);
/// Of the run's own GPU.
void read_gpu_series(const account::Account& account, const Readings& readings, Language language, Signals& signals);

/// Counters of `run --kernels`, which are more accurate than NVML's "some kernel ran". Without such series, nothing
/// changes.
void read_kernel_series(const Readings& readings, Language language, Signals& signals);

}  // namespace unidle::diagnose::detail
