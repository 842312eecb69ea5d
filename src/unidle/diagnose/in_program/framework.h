// The call of the program that hands settings to the framework that trains.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "unidle/diagnose/in_program/sources.h"
#include "unidle/diagnose/signals.h"
#include "unidle/knobs/framework_calls.h"

namespace unidle::diagnose {

struct CallInProgram {
  const knobs::FrameworkCall* framework;
  std::string file;
  std::string text;  // of the file
  knobs::PythonSource source;
  knobs::PythonSource::Call call;
};

/// For each framework that the run used, the call in the program's own scripts, if there is exactly one.
std::vector<CallInProgram> calls_of_frameworks(const Signals& signals, Sources& sources);

/// An argument of a call, as Python text.
struct CallArgument {
  std::string name;
  std::string value;
};

/// The change that sets these arguments, in this order. Without lines to write when the call unpacks others.
knobs::InProgram with_arguments(const CallInProgram& at, const std::vector<CallArgument>& arguments);

/// The change that sets a knob; nothing when no argument of the call does.
std::optional<knobs::InProgram> with_knob(const CallInProgram& at, const std::string& knob, const knobs::Value& value);

/// Whether the framework runs the validations. With accelerate the program does.
bool runs_validations(const CallInProgram& at);

/// The change that makes validations `rarer_by` times rarer; nothing when that cannot be told. `batches`: of an epoch;
/// 0 when unknown.
std::optional<knobs::InProgram> with_rarer_validation(const CallInProgram& at, double rarer_by, double batches);

}  // namespace unidle::diagnose
