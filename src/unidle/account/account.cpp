#include "unidle/account/account.h"

namespace unidle::account {

Account account_of(const RunData& run) {
  Account account;
  account.timeline = make_timeline(run);
  account.periods = make_periods(account.timeline);
  account.step = step_means(account.timeline, account.periods);
  account.phases = phase_times(account.timeline);
  account.rates = rates(account.timeline, account.periods);
  const Readings readings(run, account.timeline);
  account.cpus = cpu_use(readings);
  account.cpus_allowed = cpus_allowed(run, account.timeline);
  account.cpu_utilisation = cpu_utilisation(account.cpus, account.cpus_allowed);
  account.gpu = own_gpu(run, readings, account.timeline.process);
  account.gpu_utilisation = gpu_utilisation(readings, account.gpu);
  account.ranks = rank_times(run);
  account.losses = loss_curve(run, account.timeline);
  return account;
}

Throughput throughput(const Account& account, std::uint64_t seed) {
  return throughput(account.timeline, account.periods, seed);
}

}  // namespace unidle::account
