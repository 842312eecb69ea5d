#include "unidle/diagnose/in_program/framework.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "unidle/base/numbers.h"
#include "unidle/diagnose/configured/configured_files.h"
#include "unidle/knobs/changed_lines.h"
#include "unidle/knobs/setting_call.h"

namespace unidle::diagnose {

namespace fs = std::filesystem;

namespace {

using knobs::FrameworkCall;
using knobs::InProgram;
using knobs::PythonSource;

/// True when a function of the framework was seen at work.
bool is_used(const FrameworkCall& framework, const Signals& signals) {
  return std::any_of(signals.called.begin(), signals.called.end(), [&](const auto& called) {
    const std::string_view package = std::string_view(called.second).substr(0, called.second.find('.'));
    return std::find(framework.packages.begin(), framework.packages.end(), package) != framework.packages.end();
  });
}

bool imports(const std::string& text, const FrameworkCall& framework) {
  return std::any_of(framework.packages.begin(), framework.packages.end(), [&](std::string_view package) {
    return text.find(fmt::format("import {}", package)) != std::string::npos ||
           text.find(fmt::format("from {}", package)) != std::string::npos;
  });
}

std::optional<CallInProgram> only_call(const FrameworkCall& framework, const std::vector<fs::path>& scripts,
                                       Sources& sources) {
  std::optional<CallInProgram> found;
  for (const fs::path& script : scripts) {
    const std::string file = sources.name_of(script);
    const std::optional<std::string>& text = sources.text(file);
    auto source = text && imports(*text, framework) ? PythonSource::read(*text) : std::nullopt;
    const std::size_t calls = source ? source->count_calls(framework.functions) : 0;
    if (calls > 1 || (calls == 1 && found)) {
      return std::nullopt;
    }
    if (calls == 1) {
      const PythonSource::Call call = *source->only_call(framework.functions);
      found = CallInProgram{&framework, file, *text, std::move(*source), call};
    }
  }
  return found;
}

/// Switches for other values of the same knob, bf16 beside fp16, are refused together: those that the call names.
std::vector<CallArgument> others_switched_off(const CallInProgram& at, const knobs::FrameworkArgument& argument) {
  std::vector<CallArgument> off;
  for (const knobs::FrameworkArgument& other : at.framework->arguments) {
    const bool rival = other.knob == argument.knob && other.argument != argument.argument &&
                       argument.literal == "True" && other.literal == "True";
    const auto text = rival ? at.source.value_of(at.call, other.argument) : std::nullopt;
    if (text && *text != "False") {
      off.push_back({other.argument, "False"});
    }
  }
  return off;
}

std::optional<double> number_at(const CallInProgram& at, std::string_view argument) {
  const auto text = at.source.value_of(at.call, argument);
  return text ? parse_number<double>(*text) : std::nullopt;
}

/// A multiple of a whole number of epochs or steps; at most `most`, where the call says how many there are: training
/// has to validate once.
std::string times(double number, double factor, std::optional<double> most) {
  const double wanted = std::ceil(number * factor - 1e-9);
  return std::to_string(static_cast<long long>(most && *most >= 1 ? std::min(wanted, *most) : wanted));
}

std::optional<InProgram> rarer_in_transformers(const CallInProgram& at, double rarer_by) {
  const auto every = number_at(at, "eval_steps");
  // With the best model kept, the interval of saving has to agree.
  const bool agrees = at.source.value_of(at.call, "load_best_model_at_end").has_value();
  return every && *every >= 1 && !agrees
             ? std::optional(with_arguments(at, {{"eval_steps", times(*every, rarer_by, number_at(at, "max_steps"))}}))
             : std::nullopt;
}

/// Every so many parts of an epoch, from one on in whole epochs.
std::optional<InProgram> by_parts_of_epoch(const CallInProgram& at, double wanted, double epochs) {
  const auto part = [](const std::string& value) { return CallArgument{"val_check_interval", value}; };
  if (wanted <= 1) {
    return with_arguments(at, {part(fmt::format("{:g}", std::ceil(wanted * 100) / 100))});
  }
  if (epochs < 1) {
    return std::nullopt;
  }
  constexpr const char* kEpochs = "check_val_every_n_epoch";
  // Rounded: with one more epoch the last one of a short run may not be validated.
  const std::string every = times(std::max(1.0, std::round(epochs * wanted)), 1, number_at(at, "max_epochs"));
  if (at.source.value_of(at.call, kEpochs)) {
    return with_arguments(at, {part("1.0"), {kEpochs, every}});
  }
  // A new argument stands beside the one that it belongs to.
  return with_arguments(at, {part(every == "1" ? "1.0" : fmt::format("1.0, {}={}", kEpochs, every))});
}

std::optional<InProgram> rarer_in_lightning(const CallInProgram& at, double rarer_by, double batches) {
  constexpr std::string_view kPart = "val_check_interval";
  constexpr std::string_view kEpochs = "check_val_every_n_epoch";
  const auto part_text = at.source.value_of(at.call, kPart);
  const auto epochs_text = at.source.value_of(at.call, kEpochs);
  const double epochs = epochs_text ? number_at(at, kEpochs).value_or(0) : 1;
  if (!part_text && epochs >= 1) {
    return with_arguments(at, {{std::string(kEpochs), times(epochs, rarer_by, number_at(at, "max_epochs"))}});
  }
  const auto part = number_at(at, kPart);
  if (!part || *part <= 0) {
    return std::nullopt;
  }
  const double wanted = *part * rarer_by;
  if (part_text->find('.') != std::string::npos) {
    return by_parts_of_epoch(at, wanted, epochs);
  }
  // A number of batches: more than an epoch has are refused unless epochs do not count.
  if (epochs_text == "None" || (batches > 0 && wanted <= batches)) {
    return with_arguments(at, {{std::string(kPart), times(*part, rarer_by, {})}});
  }
  return batches > 0 ? by_parts_of_epoch(at, std::max(1.01, wanted / batches), epochs) : std::nullopt;
}

}  // namespace

std::vector<CallInProgram> calls_of_frameworks(const Signals& signals, Sources& sources) {
  std::vector<CallInProgram> calls;
  std::optional<std::vector<fs::path>> scripts;
  for (const FrameworkCall& framework : knobs::framework_calls()) {
    if (!is_used(framework, signals)) {
      continue;
    }
    if (!scripts) {
      scripts = configured_files(signals.command, sources.folder()).scripts;
    }
    if (auto call = only_call(framework, *scripts, sources)) {
      calls.push_back(std::move(*call));
    }
  }
  return calls;
}

InProgram with_arguments(const CallInProgram& at, const std::vector<CallArgument>& arguments) {
  InProgram words{.words = {}, .call = at.source.name_of(at.call)};
  std::optional<std::string> edited = at.text;
  for (const auto& [name, value] : arguments) {
    words.words += fmt::format("{}{}={}", words.words.empty() ? "" : ", ", name, value);
    const auto source = edited ? PythonSource::read(*edited) : std::nullopt;
    const auto call = source ? source->only_call(at.framework->functions) : std::nullopt;
    edited = call ? source->with_argument(*call, name, value) : std::nullopt;
  }
  if (edited && *edited != at.text) {
    put_lines(at.file, at.text, *edited, words);
  } else {
    const int line = at.source.line_of(at.call);
    words.where = fmt::format("{}:{}", at.file, line);
    words.before = {std::string(knobs::line_of(at.text, line))};
  }
  return words;
}

std::optional<InProgram> with_knob(const CallInProgram& at, const std::string& knob, const knobs::Value& value) {
  const knobs::FrameworkArgument* argument = at.framework->find(knob, value);
  if (argument == nullptr) {
    return std::nullopt;
  }
  std::vector<CallArgument> arguments = others_switched_off(at, *argument);
  arguments.push_back({argument->argument, argument->literal.empty() ? knobs::python_value(value) : argument->literal});
  return with_arguments(at, arguments);
}

bool runs_validations(const CallInProgram& at) { return at.framework->packages.front() != "accelerate"; }

std::optional<InProgram> with_rarer_validation(const CallInProgram& at, double rarer_by, double batches) {
  const std::string_view package = at.framework->packages.front();
  return package == "transformers" ? rarer_in_transformers(at, rarer_by)
         : package == "lightning"  ? rarer_in_lightning(at, rarer_by, batches)
                                   : std::nullopt;
}

}  // namespace unidle::diagnose
