#include "unidle/tune/advice/proposals.h"

#include <fmt/format.h>

#include <algorithm>

#include "unidle/base/units.h"
#include "unidle/diagnose/policy.h"
#include "unidle/knobs/knob.h"
#include "unidle/tune/advice/hardware_advice.h"

namespace unidle::tune {

namespace {

class Proposer {
 public:
  Proposer(const knobs::Settings& settings, const traits::Workload* workload, const Hardware& hardware,
           const ProposalOptions& options)
      : settings_(settings),
        workload_(workload == nullptr ? traits::Workload() : *workload),
        hardware_(hardware),
        options_(options) {}

  std::vector<Proposal> run() {
    loader();
    transfer();
    arithmetic();
    step();
    batch();
    std::stable_sort(found_.begin(), found_.end(),
                     [](const Proposal& a, const Proposal& b) { return a.promise > b.promise; });
    return std::move(found_);
  }

 private:
  bool gpu() const { return hardware_.gpus > 0; }
  long long number(const char* knob) const { return settings_.integer(knob); }
  std::optional<Advised> advised(const std::string& knob) const {
    const auto present = settings_.in_force(knob);
    return present ? advised_for(hardware_, knob, *present) : std::nullopt;
  }

  void add(knobs::Settings changes, double promise, bool safe, std::string reason) {
    changes.erase_if([&](const auto& change) { return settings_.in_force(change.first) == change.second; });
    const bool unread = options_.only_present && std::any_of(changes.begin(), changes.end(), [&](const auto& change) {
                          return !settings_.contains(change.first);
                        });
    if (!changes.empty() && !unread) {
      found_.push_back({std::move(changes), std::move(reason), promise, safe});
    }
  }

  /// Adds what the machine needs.
  void add_advised(const std::string& knob, double promise) {
    if (const auto wanted = advised(knob)) {
      add({{knob, wanted->value}}, promise, true, wanted->reason);
    }
  }

  void loader() {
    const int cpus = hardware_.whole_cpus();
    const long long workers = number("loader.workers");
    const int best = best_workers(hardware_);
    add_advised("loader.workers", workers == 0 ? 0.6 : 0.4);
    for (const int other : {best * 2, best / 2, cpus}) {
      if (other >= 1 && other != best && other != workers && other <= std::min(2 * cpus, kMostWorkers)) {
        add({{"loader.workers", other}}, 0.15, false,
            fmt::format("another number of loader workers; {}", cpus_in_words(hardware_)));
      }
    }
    // Of too many workers on a machine that also trains on its CPUs, none may be best: that depends on the samples.
    add({{"loader.workers", 0}}, !gpu() && workers > cpus ? 0.45 : 0.15, false,
        "batches that are cheap to make cost more to send from a worker than to make in the training process");
    if (number("loader.prefetch_factor") < 4) {
      add({{"loader.prefetch_factor", 4}}, 0.05, true, "a deeper queue hides samples that take unusually long");
    }
    if (settings_.contains("loader.persistent_workers")) {
      add({{"loader.persistent_workers", true}}, 0.04, true, "workers need not be started anew every epoch");
    }
    const bool keeps = settings_.in_force("cache.features") != "off";
    if (!keeps && (workload_.costly_samples || settings_.contains("cache.features"))) {
      if (workload_.feature_cache) {
        add({{"cache.features", "disk"}}, 0.5, true,
            "costly per-sample work is the same in every epoch, and in later runs");
      }
      add({{"cache.features", "memory"}}, workload_.feature_cache ? 0.2 : 0.5, !workload_.feature_cache,
          "costly per-sample work is the same in every epoch");
    }
  }

  void transfer() {
    if (!gpu()) {
      return;
    }
    knobs::Settings copies;
    for (const std::string knob : {"loader.pin_memory", "transfer.non_blocking"}) {
      if (const auto wanted = advised(knob)) {
        copies.set(knob, wanted->value);
      }
    }
    add(copies, 0.2, true, "copies to the GPU run beside the computation from page-locked memory only");
    if (workload_.small_data || settings_.contains("data.on_device")) {
      add({{"data.on_device", true}}, 0.3, false, "a data set that fits the device need not be copied every epoch");
    }
  }

  void arithmetic() {
    add_advised("precision.amp", 0.45);
    add_advised("precision.tf32", 0.3);
    if (!gpu() && hardware_.cpu_bf16) {
      add({{"precision.amp", "bf16"}}, 0.3, false, "this CPU has units for bf16");
    }
    const auto mixed = advised_for(hardware_, "precision.amp", "off");
    if (mixed && settings_.in_force("precision.amp") != "off") {
      add({{"precision.amp", mixed->value}}, 0.1, false, mixed->reason);  // instead of another format
    }
    if (workload_.convolutions || settings_.contains("layout.channels_last")) {
      add_advised("layout.channels_last", 0.25);
    }
    if (gpu() && workload_.convolutions) {
      add({{"cudnn.benchmark", true}}, 0.1, true, "the pictures have one size, so timing the algorithms once pays");
    }
    add_advised("cpu.threads", 0.35);
    if (const int cpus = hardware_.whole_cpus(); !gpu() && cpus > 2) {
      add({{"cpu.threads", cpus - 1}}, 0.08, false, "leaves one CPU to the loader");
    }
  }

  void step() {
    add({{"optimizer.fused", true}}, gpu() ? 0.12 : 0.1, true,
        "one pass over the parameters instead of several operations for each tensor");
    add({{"optimizer.zero_to_none", true}}, 0.03, true, "dropping gradients saves a pass that fills them with zeros");
    if (number("metrics.interval") < 10) {
      add({{"metrics.interval", diagnose::Policy{}.metrics_interval}}, gpu() ? 0.15 : 0.06, true,
          "every reading of the loss makes the host wait for the device; only the log gets sparser");
    }
    if (!options_.only_present) {  // another program may divide by it
      add({{"memory.flush_interval", 0}}, gpu() ? 0.15 : 0.1, true,
          "memory that is kept need not be asked for again in the next step");
    }
    if (gpu()) {
      add({{"compile.mode", "graph"}}, 0.2, false, "one graph launch replaces the launches of all kernels");
    } else if (settings_.in_force("compile.mode") != "off") {
      add({{"compile.mode", "off"}}, 0.05, false, "compiling may not pay on a CPU");
    }
  }

  /// The largest micro-batch with the same effective batch; BatchSearch measures the others too.
  void batch() {
    const long long size = number("batch.size");
    const long long accumulation = number("batch.accumulation");
    const std::vector<long long> sizes = larger_micro_batches(size, accumulation);
    if (!sizes.empty()) {
      const long long largest = sizes.back();
      add({{"batch.size", largest}, {"batch.accumulation", size * accumulation / largest}}, 0.3,
          has_room_for_larger_batches(hardware_),
          fmt::format("larger micro-batches at the same effective batch of {}", size * accumulation));
    }
  }

  const knobs::Settings& settings_;
  traits::Workload workload_;
  const Hardware& hardware_;
  ProposalOptions options_;
  std::vector<Proposal> found_;
};

}  // namespace

std::vector<long long> larger_micro_batches(long long size, long long accumulation) {
  std::vector<long long> sizes;
  if (size > kLargestBatch || accumulation > kLargestBatch) {
    return sizes;
  }
  const long long effective = size * accumulation;
  for (long long count = accumulation - 1; count >= 1 && size > 0; --count) {
    if (effective % count == 0) {
      sizes.push_back(effective / count);
    }
  }
  return sizes;
}

std::vector<Proposal> propose(const knobs::Settings& settings, const traits::Workload* workload,
                              const Hardware& hardware, const ProposalOptions& options) {
  return Proposer(settings, workload, hardware, options).run();
}

}  // namespace unidle::tune
