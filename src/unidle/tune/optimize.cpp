#include "unidle/tune/optimize.h"

#include <fmt/format.h>

#include "unidle/base/error.h"
#include "unidle/knobs/run_facts.h"
#include "unidle/traits/workload.h"
#include "unidle/tune/advice/foreign_advice.h"
#include "unidle/tune/advice/gpu_table.h"
#include "unidle/tune/output/written.h"

namespace unidle::tune {

namespace {

/// The workload that the configuration names; optional with a command. Throws kInput when there is neither.
const traits::Workload* workload_of(const knobs::ConfigFile& config, bool has_command) {
  const knobs::Scalar* workload = config.find("workload");
  const traits::Workload* found = workload == nullptr ? nullptr : traits::find_workload(workload->value);
  if (found != nullptr || has_command) {
    return found;
  }
  const std::string expected = "expected one of " + traits::workload_names();
  if (workload == nullptr) {
    throw Error(ErrorCode::kInput, config.name() + ": workload", "the key is missing, " + expected,
                "or give the training command after --, with {config} for the file");
  }
  throw Error(ErrorCode::kInput, fmt::format("{}:{}: workload", config.name(), workload->line),
              fmt::format("unknown workload '{}', {}", workload->value, expected));
}

/// A configuration for another device than a GPU gets advice without one, whatever the machine has.
Hardware hardware_for(const knobs::ConfigFile& config, const OptimizeOptions& options, OptimizeResult& result) {
  Hardware hardware = this_machine();
  hardware.cpus = options.cpus > 0 ? options.cpus : hardware.cpus;
  if (!options.device.empty()) {
    hardware = with_device(hardware, options.device);
  }
  if (const auto other = knobs::device_other_than_gpu(config); other && hardware.gpus > 0) {
    hardware.gpus = 0;
    result.notes.push_back(
        fmt::format("line {}: {}: {}: the run uses no NVIDIA or AMD GPU", other->line, other->path, other->value));
  }
  return hardware;
}

/// Predicts from file and hardware alone. A workload's configuration may get any key, another program's only keys that
/// it reads.
void predict(const OptimizeOptions& options, knobs::ConfigFile& config, OptimizeResult& result) {
  const Hardware hardware = hardware_for(config, options, result);
  if (!hardware.gpu_note.empty()) {
    result.notes.push_back(
        fmt::format("no GPU could be read ({}); --device NAME advises for another machine", hardware.gpu_note));
  }
  if (!options.device.empty() && options.cpus <= 0) {
    result.notes.push_back(fmt::format("the {} CPUs are those of this machine; --cpus N advises for another number",
                                       hardware.whole_cpus()));
  }
  if (config.find("workload") != nullptr) {
    const traits::Workload* workload = workload_of(config, !options.command.empty());
    result.framework = "unidle";
    result.changes = advise(config, workload, hardware, !options.command.empty(), options.profile);
    apply_changes(result.changes, config);
    return;
  }
  ForeignAdvice advice = advise_foreign(config, hardware, options.profile);
  result.framework = advice.framework;
  result.changes = std::move(advice.changes);
  result.left = std::move(advice.left);
  if (advice.recognized == 0) {
    result.notes.push_back("no setting in it is one that unidle knows");
  }
}

}  // namespace

OptimizeResult optimize(const OptimizeOptions& options, const Progress& progress, std::stop_token stop) {
  knobs::ConfigFile config = knobs::ConfigFile::load(options.config);
  OptimizeResult result;
  result.config = config.name();
  result.before = config.text();
  if (options.benchmark) {
    const traits::Workload* workload = workload_of(config, !options.command.empty());
    benchmark_config(options, config, workload, hardware_for(config, options, result), progress, stop, result);
    apply_changes(result.changes, config);
  } else {
    predict(options, config, result);
  }
  result.after = config.text();
  result.diff = explained_diff(result.before, config, result.changes, config.name());
  if (options.benchmark) {
    write_record(result);
  }
  return result;
}

}  // namespace unidle::tune
