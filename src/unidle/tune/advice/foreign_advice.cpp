#include "unidle/tune/advice/foreign_advice.h"

#include <fmt/format.h>

#include <algorithm>

#include "unidle/base/error.h"
#include "unidle/base/numbers.h"
#include "unidle/base/units.h"
#include "unidle/knobs/apply.h"
#include "unidle/knobs/knob.h"
#include "unidle/knobs/recognize.h"
#include "unidle/tune/advice/proposals.h"

namespace unidle::tune {

namespace {

/// The queue that PyTorch's DataLoader has by default, in batches a worker.
constexpr int kUsualPrefetch = 2;
/// Steps between two readings of the loss: often enough to watch, rare enough to cost nothing.
constexpr int kMetricsInterval = 10;
/// Below this a GPU has no room for larger micro-batches to be proposed unseen.
constexpr std::uint64_t kRoomyGpuBytes = 24ULL << 30;

class Adviser {
 public:
  Adviser(knobs::ConfigFile& config, const Hardware& hardware, Profile profile)
      : config_(config), hardware_(hardware), profile_(profile), recognition_(knobs::recognize(config)) {
    configured_ = knobs::configured(recognition_);
    advice_.framework = recognition_.framework;
    advice_.recognized = recognition_.knobs.size();
  }

  ForeignAdvice run() {
    if (advice_.recognized > 0) {
      loader();
      host();
      precision();
      kernels();
      batch();
    }
    return std::move(advice_);
  }

 private:
  bool gpu() const { return hardware_.gpus > 0; }
  bool has(const char* knob) const { return configured_.contains(knob); }
  /// Some setting is about this knob, whether or not it tells the value.
  bool mentions(const char* knob) const {
    return std::any_of(recognition_.knobs.begin(), recognition_.knobs.end(),
                       [&](const knobs::Recognized& setting) { return setting.knob == knob; });
  }
  bool is(const char* knob, std::string_view value) const {
    const auto found = configured_.find(knob);
    return found != configured_.end() && found->second.value == value;
  }
  std::optional<long long> number(const char* knob) const {
    const auto found = configured_.find(knob);
    return found == configured_.end() ? std::nullopt : parse_number<long long>(found->second.value);
  }

  /// Tries the edit; what the file cannot say is told, not forced.
  bool propose(const std::string& knob, const std::string& to, std::string reason, std::string depends) {
    const knobs::Knob* known = knobs::find_knob(knob);
    const auto before = configured_.find(knob);
    if (profile_ == Profile::kLight && known->knob_class != knobs::KnobClass::kExact) {
      return false;
    }
    try {
      const std::vector<knobs::Edit> edits = knobs::set_knob(config_, knob, to);
      if (edits.empty()) {
        return false;
      }
      Change change{knob, before == configured_.end() ? known->fallback : before->second.value, to, std::move(reason),
                    std::nullopt};
      change.depends = std::move(depends);
      for (const knobs::Edit& edit : edits) {
        change.paths.push_back(edit.path);
      }
      advice_.changes.push_back(std::move(change));
      return true;
    } catch (const Error& failure) {
      if (before != configured_.end()) {
        advice_.left.push_back(fmt::format("{}={}: {}", knob, to, failure.what()));
      }
      return false;
    }
  }

  int best_workers() const {
    const int each = hardware_.whole_cpus() / std::max(1, hardware_.gpus);
    return std::clamp(gpu() ? each - 1 : each / 2, 1, kMostWorkers);
  }

  void loader() {
    auto workers = number("loader.workers");
    if (!workers && !mentions("loader.workers") && recognition_.framework == "huggingface") {
      workers = 0;  // TrainingArguments.dataloader_num_workers
    }
    const int cpus = hardware_.whole_cpus();
    const std::string mine = fmt::format("this job may use {} CPUs", cpus) +
                             (hardware_.gpus > 1 ? fmt::format(" for {} GPUs", hardware_.gpus) : "");
    const std::string room = "memory for one copy of the data set's state a worker";
    bool working = workers.value_or(0) > 0;
    if (workers == 0) {
      const bool conflict = has("loader.prefetch_factor") || is("loader.persistent_workers", "true");
      working |= propose("loader.workers", std::to_string(best_workers()),
                         "the training process prepares every batch itself while the device waits; " + mine +
                             (conflict ? "; prefetch and persistent workers are errors without workers" : ""),
                         room);
    } else if (workers && *workers > cpus) {
      propose("loader.workers", std::to_string(best_workers()),
              fmt::format("{} workers compete for the CPUs; {}", *workers, mine), room);
    }
    if (working && is("loader.persistent_workers", "false")) {
      propose("loader.persistent_workers", "true", "workers are not started anew for every epoch",
              "a data set that does not change between epochs");
    }
    if (working && number("loader.prefetch_factor").value_or(kUsualPrefetch) < kUsualPrefetch) {
      propose("loader.prefetch_factor", std::to_string(kUsualPrefetch),
              "a queue of one batch a worker runs dry whenever a sample takes longer", "memory for the batches");
    }
    if (gpu() && is("loader.pin_memory", "false")) {
      propose("loader.pin_memory", "true", "copies to the GPU are faster, and can be asynchronous, from pinned memory",
              "host memory that may be locked");
    }
    if (gpu() && is("transfer.non_blocking", "false")) {
      propose("transfer.non_blocking", "true", "the host goes on while a batch is copied", "pinned memory");
    }
  }

  void host() {
    const auto threads = number("cpu.threads");
    if (threads && *threads > hardware_.whole_cpus()) {
      propose("cpu.threads", std::to_string(hardware_.whole_cpus()),
              fmt::format("{} threads compete for {} CPUs", *threads, hardware_.whole_cpus()), "");
    }
    if (number("metrics.interval") == 1) {
      propose("metrics.interval", std::to_string(kMetricsInterval),
              "reading the loss in every step makes the host wait for the device; only the log gets sparser", "");
    }
    if (is("optimizer.zero_to_none", "false")) {
      propose("optimizer.zero_to_none", "true", "dropping gradients saves a pass that fills them with zeros",
              "code that does not read gradients of unused parameters");
    }
  }

  void precision() {
    if (!gpu() || hardware_.capability == 0) {
      return;
    }
    const std::string& name = hardware_.gpu_name;
    if (is("precision.amp", "off") && hardware_.capability >= kAmpere) {
      propose("precision.amp", "bf16", name + " has matrix units for bf16, which needs no loss scaling",
              "a model that trains in mixed precision; compare the loss");
    } else if (is("precision.amp", "off") && hardware_.capability >= kVolta) {
      propose("precision.amp", "fp16", name + " has matrix units for fp16, not for bf16",
              "loss scaling in the program; compare the loss");
    } else if (is("precision.amp", "bf16") && hardware_.capability < kAmpere && hardware_.capability >= kVolta) {
      propose("precision.amp", "fp16", name + " has no units for bf16, but for fp16",
              "loss scaling in the program; compare the loss");
    }
    if (is("precision.tf32", "false") && hardware_.capability >= kAmpere) {
      propose("precision.tf32", "true", "what stays in fp32 can use the TF32 matrix units",
              "no need for more than 10 bits in matrix products");
    }
  }

  void kernels() {
    if (gpu() && is("optimizer.fused", "false")) {
      propose("optimizer.fused", "true", "one pass over the parameters instead of several kernels for each tensor",
              "an optimiser that has a fused form");
    }
    if (is("layout.channels_last", "false") && (!gpu() || hardware_.capability >= kVolta)) {
      propose("layout.channels_last", "true", "convolution kernels work with channels innermost",
              "a model of convolutions");
    }
    if (profile_ != Profile::kFast || !gpu()) {
      return;
    }
    if (is("cudnn.benchmark", "false")) {
      propose("cudnn.benchmark", "true", "cuDNN keeps the fastest algorithm", "inputs of one size");
    }
    if (is("compile.mode", "off")) {
      propose("compile.mode", "default", "fuses element-wise work and removes launches",
              "shapes that stay the same, and a run long enough to pay for compiling");
    }
  }

  /// Fewer, larger micro-batches with the same product.
  void batch() {
    const auto size = number("batch.size");
    const auto accumulation = number("batch.accumulation");
    const bool roomy = gpu() && hardware_.gpu_memory_bytes >= kRoomyGpuBytes;
    if (profile_ != Profile::kFast || !roomy || !size || !accumulation || *accumulation < 2) {
      return;
    }
    const std::vector<long long> sizes = larger_micro_batches(*size, *accumulation);
    if (sizes.empty()) {
      return;
    }
    const long long larger = sizes.front();
    const std::string steps = std::to_string(*size * *accumulation / larger);
    if (!knobs::can_set(config_, "batch.size", std::to_string(larger)) ||
        !knobs::can_set(config_, "batch.accumulation", steps)) {
      return;
    }
    const std::string reason =
        fmt::format("fewer, larger micro-batches at the same effective batch of {} a device", *size * *accumulation);
    const std::string depends =
        fmt::format("activations of {} samples in {}", larger, format_bytes(hardware_.gpu_memory_bytes));
    propose("batch.size", std::to_string(larger), reason, depends);
    propose("batch.accumulation", steps, reason, depends);
  }

  knobs::ConfigFile& config_;
  const Hardware& hardware_;
  Profile profile_;
  knobs::Recognition recognition_;
  std::map<std::string, knobs::Configured> configured_;
  ForeignAdvice advice_;
};

}  // namespace

ForeignAdvice advise_foreign(knobs::ConfigFile& config, const Hardware& hardware, Profile profile) {
  return Adviser(config, hardware, profile).run();
}

}  // namespace unidle::tune
