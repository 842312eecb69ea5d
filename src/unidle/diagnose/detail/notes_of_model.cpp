#include <algorithm>
#include <string>

#include "unidle/diagnose/detail/notes.h"

namespace unidle::diagnose::detail {

namespace {

/// Steps needed with device events; fewer are not evidence.
constexpr double kFewestSteps = 10;

void read_modules(const Notes& notes, Signals& signals) {
  const auto either = [](std::optional<bool>& fact, const std::optional<bool>& seen) {
    if (seen) {
      fact = fact.value_or(false) || *seen;
    }
  };
  notes.each<record::NoteType::kModel>([&](const auto& note) {
    signals.model_dtype = note.text("dtype");
    if (const auto parameters = note.whole("parameters")) {
      signals.model_parameters = std::max(signals.model_parameters.value_or(0), *parameters);
    }
    auto convolutions = note.flag("convolutions");
    if (const auto count = note.number("convolutions")) {
      convolutions = *count > 0;
    }
    either(signals.model_has_convolutions, convolutions);
    if (const auto parameters = note.whole("convolution_parameters")) {
      signals.model_convolution_parameters = std::max(signals.model_convolution_parameters.value_or(0), *parameters);
    }
    either(signals.convolutions_tf32, note.flag("convolutions_tf32"));
    either(signals.model_has_depthwise, note.flag("depthwise"));
    signals.sparse_gradients = signals.sparse_gradients || note.flag("sparse_gradients").value_or(false);
    if (const std::string where = note.text("training_where"); !where.empty()) {
      signals.model_where = where;
    }
    if (const std::string device = note.text("device"); !device.empty() && !signals.effective("device")) {
      signals.settings["device"].effective = device;
    }
  });
}

void read_debugging(const Notes& notes, Signals& signals) {
  notes.each<record::NoteType::kDebugging>([&](const auto& note) {
    DebuggingFacts& facts = signals.debugging ? *signals.debugging : signals.debugging.emplace();
    facts.anomaly = facts.anomaly || note.flag("anomaly").value_or(false);
    facts.profiler = facts.profiler || note.flag("profiler").value_or(false);
    facts.launch_blocking = facts.launch_blocking || note.flag("launch_blocking").value_or(false);
    facts.checked_collectives = facts.checked_collectives || note.flag("checked_collectives").value_or(false);
    if (const std::string where = note.text("where"); !where.empty()) {
      facts.where = where;
    }
  });
}

void read_device(const Notes& notes, Signals& signals) {
  notes.each<record::NoteType::kDevice>([&](const auto& note) {
    const std::string kind = note.text("kind");
    if (!kind.empty() && !signals.effective("device")) {
      signals.settings["device"].effective = kind;
    }
    const auto bytes = note.number("memory_bytes");
    if (kind == "cpu" || (!notes.of_training(note))) {
      return;
    }
    if (bytes && *bytes > 0) {
      signals.gpu.memory_bytes = note.whole("memory_bytes");
      if (const auto peak = note.number("reserved_peak_bytes")) {
        signals.gpu_memory_used = std::clamp(*peak / *bytes, 0.0, 1.0);
      }
    }
    if (const std::string capability = note.text("capability"); !capability.empty()) {
      signals.gpu_capability = capability;
    }
    const auto looked_at = note.number("looked_at");
    if (const auto kept_up = note.number("kept_up"); kept_up && looked_at.value_or(0) >= kFewestSteps) {
      signals.device_kept_up = std::clamp(*kept_up / *looked_at, 0.0, 1.0);
    }
    signals.gpu.alloc_retries = note.whole("alloc_retries");
    signals.gpu.ooms = note.whole("ooms");
  });
  notes.each<record::NoteType::kMemory>([&](const auto& note) {
    if (const auto ooms = note.whole("oom")) {
      signals.gpu.ooms = std::max(signals.gpu.ooms.value_or(0), *ooms);
      if (notes.of_training(note)) {
        signals.gpu.oom_samples = note.whole("samples");
        signals.gpu.oom_steps_before = note.whole("steps_before");
      }
    }
  });
}

}  // namespace

void read_model(const Notes& notes, Signals& signals) {
  read_modules(notes, signals);
  read_debugging(notes, signals);
  read_device(notes, signals);
}

}  // namespace unidle::diagnose::detail
