// Signals out of the series of the host and the device, over the time that training takes.
#pragma once

#include "unidle/account/account.h"
#include "unidle/diagnose/signals.h"
#include "unidle/language/language.h"

namespace unidle::diagnose::detail {

using account::Readings;

/// Memory and storage, threads and processes.
void read_host_series(const account::RunData& run, const Readings& readings, Signals& signals);
/// Of the run's own GPU.
void read_gpu_series(const account::Account& account, const Readings& readings, Language language, Signals& signals);

/// Of `run --kernels`: truer than NVML's "some kernel ran". Without such series nothing changes.
void read_kernel_series(const Readings& readings, Language language, Signals& signals);

}  // namespace unidle::diagnose::detail
