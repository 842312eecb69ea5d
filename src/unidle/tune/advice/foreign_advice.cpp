#include "unidle/tune/advice/foreign_advice.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "unidle/base/error.h"
#include "unidle/base/units.h"
#include "unidle/diagnose/policy.h"
#include "unidle/knobs/apply.h"
#include "unidle/knobs/comments.h"
#include "unidle/knobs/knob.h"
#include "unidle/knobs/recognize.h"
#include "unidle/knobs/run_facts.h"
#include "unidle/tune/advice/hardware_advice.h"
#include "unidle/tune/advice/proposals.h"

namespace unidle::tune {

namespace {

/// PyTorch's default DataLoader queue, in batches per worker.
constexpr int kUsualPrefetch = 2;
/// More than any machine has.
constexpr long long kMostGpus = 64;

class Adviser {
 public:
  Adviser(knobs::ConfigFile& config, const Hardware& hardware, Profile profile)
      : config_(config), hardware_(hardware), profile_(profile), recognition_(knobs::recognize(config)) {
    configured_ = knobs::configured(recognition_);
    if (gpu()) {
      hardware_.gpus =
          std::max(hardware_.gpus, static_cast<int>(std::min(knobs::gpus_of_a_machine(config), kMostGpus)));
    }
    generates_ = knobs::generates_samples(config);
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
  /// True when a setting concerns this knob, even if its value is unknown.
  bool mentions(const char* knob) const {
    return std::any_of(recognition_.knobs.begin(), recognition_.knobs.end(),
                       [&](const knobs::Recognized& setting) { return setting.knob == knob; });
  }
  bool is(const char* knob, const knobs::Value& value) const {
    const auto found = configured_.find(knob);
    return found != configured_.end() && found->second.value == value;
  }
  std::optional<long long> number(const char* knob) const {
    const auto found = configured_.find(knob);
    return found == configured_.end() ? std::nullopt : found->second.value.integer();
  }

  /// Tries the edit; an edit that the file cannot express is reported instead.
  bool propose(const std::string& knob, const knobs::Value& to, std::string reason, std::string depends) {
    const knobs::Knob* known = knobs::find_knob(knob);
    const auto before = configured_.find(knob);
    if (profile_ == Profile::kLight && known->knob_class != knobs::KnobClass::kExact) {
      return false;
    }
    if (const auto decision = knobs::decision_on(config_, recognition_, knob)) {
      leave(fmt::format("{}={}: {}:{}: {} is set on purpose, its comment says: {}", knob, to, config_.name(),
                        decision->line, decision->path, decision->comment));
      return false;
    }
    try {
      knobs::ConfigFile edited = config_;
      const std::vector<knobs::Edit> edits = knobs::set_knob(edited, knob, to);
      const auto guessed = std::find_if(edits.begin(), edits.end(), [](const auto& edit) { return edit.guessed; });
      if (guessed != edits.end()) {
        leave(
            fmt::format("{}={}: {}: {}: it is not known whether the program takes '{}' instead of '{}'; see its "
                        "documentation",
                        knob, to, config_.name(), guessed->path, guessed->to, guessed->from));
        return false;
      }
      if (edits.empty()) {
        return false;
      }
      config_ = std::move(edited);
      auto change = knobs::change_of(knob, before == configured_.end() ? known->fallback : before->second.value, to,
                                     std::move(reason));
      change.depends = std::move(depends);
      for (const knobs::Edit& edit : edits) {
        change.paths.push_back(edit.path);
      }
      advice_.changes.push_back(std::move(change));
      return true;
    } catch (const Error& failure) {
      if (before != configured_.end()) {
        leave(fmt::format("{}={}: {}", knob, to, failure.what()));
      }
      return false;
    }
  }

  void leave(std::string what) { advice_.left.push_back(std::move(what)); }

  /// Proposes what the machine needs when the file has the value `present`.
  bool propose_advised(const std::string& knob, const knobs::Value& present, const std::string& besides = {}) {
    const auto advised = advised_for(hardware_, knob, present);
    return advised &&
           propose(knob, advised->value, advised->reason + (besides.empty() ? "" : "; " + besides), advised->depends);
  }
  bool propose_advised(const std::string& knob) {
    const auto found = configured_.find(knob);
    return found != configured_.end() && propose_advised(knob, found->second.value);
  }

  void loader() {
    auto workers = number("loader.workers");
    if (!workers && !mentions("loader.workers") && recognition_.framework == "huggingface") {
      workers = 0;  // TrainingArguments.dataloader_num_workers
    }
    const bool waits_elsewhere = workers == 0 && generates_;
    if (waits_elsewhere) {
      leave(fmt::format("loader.workers: {}: a step waits for the samples that it generates, not for the loader",
                        config_.name()));
    }
    const bool conflict = workers == 0 && (has("loader.prefetch_factor") || is("loader.persistent_workers", true));
    const bool given = workers && !waits_elsewhere &&
                       propose_advised("loader.workers", *workers,
                                       conflict ? "prefetch and persistent workers are errors without workers" : "");
    const bool working = given || workers.value_or(0) > 0;
    if (working && is("loader.persistent_workers", false)) {
      propose("loader.persistent_workers", true, "workers are not started anew for every epoch",
              "a data set that does not change between epochs");
    }
    if (working && number("loader.prefetch_factor").value_or(kUsualPrefetch) < kUsualPrefetch) {
      propose("loader.prefetch_factor", kUsualPrefetch,
              "a queue of one batch a worker runs dry whenever a sample takes longer", "memory for the batches");
    }
    propose_advised("loader.pin_memory");
    propose_advised("transfer.non_blocking");
  }

  void host() {
    propose_advised("cpu.threads");
    const long long interval = longest_interval();
    if (gpu() && number("metrics.interval") == 1 && interval > 1 && !generates_) {
      propose("metrics.interval", interval,
              "reading the loss in every step makes the host wait for the device; only the log gets sparser", "");
    }
    if (is("optimizer.zero_to_none", false)) {
      propose("optimizer.zero_to_none", true, "dropping gradients saves a pass that fills them with zeros",
              "code that does not read gradients of unused parameters");
    }
  }

  /// The usual interval, or a round number that still logs ten times in a short run; 1 if there is none.
  long long longest_interval() const {
    const long long most = knobs::most_steps(config_).value_or(10LL * diagnose::Policy{}.metrics_interval) / 10;
    const std::array<long long, 5> choices = {diagnose::Policy{}.metrics_interval, 20, 10, 5, 2};
    const auto found = std::find_if(choices.begin(), choices.end(), [&](long long each) { return each <= most; });
    return found == choices.end() ? 1 : *found;
  }

  /// Whether no setting says which format is used.
  bool only_switches_precision() const {
    return std::none_of(recognition_.knobs.begin(), recognition_.knobs.end(), [](const knobs::Recognized& setting) {
      return setting.knob == "precision.amp" && setting.phase == knobs::Phase::kTraining &&
             setting.meaning != knobs::Meaning::kSwitch;
    });
  }

  void precision() {
    const auto present = configured_.find("precision.amp");
    auto advised =
        present == configured_.end() ? std::nullopt : advised_for(hardware_, "precision.amp", present->second.value);
    if (advised) {
      if (only_switches_precision()) {
        advised->reason =
            fmt::format("{} has matrix units for 16-bit formats, of which the program chooses one", hardware_.gpu_name);
      }
      propose("precision.amp", advised->value, advised->reason, advised->depends);
    }
    propose_advised("precision.tf32");
  }

  void kernels() {
    if (gpu() && is("optimizer.fused", false)) {
      propose("optimizer.fused", true, "one pass over the parameters instead of several kernels for each tensor",
              "an optimiser that has a fused form");
    }
    propose_advised("layout.channels_last");
    if (profile_ != Profile::kFast || !gpu()) {
      return;
    }
    if (is("cudnn.benchmark", false)) {
      propose("cudnn.benchmark", true, "cuDNN keeps the fastest algorithm", "inputs of one size");
    }
    if (is("compile.mode", "off")) {
      propose("compile.mode", "default", "fuses element-wise work and removes launches",
              "shapes that stay the same, and a run long enough to pay for compiling");
    }
  }

  /// Proposes fewer, larger micro-batches with the same product.
  void batch() {
    const auto size = number("batch.size");
    const auto accumulation = number("batch.accumulation");
    if (profile_ != Profile::kFast || !has_room_for_larger_batches(hardware_) || !size || !accumulation ||
        *accumulation < 2) {
      return;
    }
    const std::vector<long long> sizes = larger_micro_batches(*size, *accumulation);
    const bool decided = knobs::decision_on(config_, recognition_, "batch.size") ||
                         knobs::decision_on(config_, recognition_, "batch.accumulation");
    if (sizes.empty() || decided || knobs::devices_of_a_batch(config_) > 1) {
      return;
    }
    const long long larger = sizes.front();
    const long long steps = *size * *accumulation / larger;
    if (!knobs::can_set(config_, "batch.size", larger) || !knobs::can_set(config_, "batch.accumulation", steps)) {
      return;
    }
    const std::string reason =
        fmt::format("fewer, larger micro-batches at the same effective batch of {} a device", *size * *accumulation);
    const std::string depends =
        fmt::format("activations of a micro-batch of {} in {}", larger, format_bytes(hardware_.gpu_memory_bytes));
    propose("batch.size", larger, reason, depends);
    propose("batch.accumulation", steps, reason, depends);
  }

  knobs::ConfigFile& config_;
  Hardware hardware_;  // with the GPUs that the file asks for
  Profile profile_;
  bool generates_ = false;
  knobs::Recognition recognition_;
  std::map<std::string, knobs::Configured> configured_;
  ForeignAdvice advice_;
};

}  // namespace

ForeignAdvice advise_foreign(knobs::ConfigFile& config, const Hardware& hardware, Profile profile) {
  return Adviser(config, hardware, profile).run();
}

}  // namespace unidle::tune
