// What a function that saves a checkpoint does besides writing it, such as fsync or removing older files.
#pragma once

#include "unidle/diagnose/context.h"

namespace unidle::diagnose::detail {

/// Whether the line runs between the calls of the model, in a function that also writes checkpoints and does not train.
bool is_beside_saving(const Signals& signals, const HotLine& line);

/// The part of the stack samples between the calls of the model that fall on such lines; 0 if they are few.
double part_beside_saving(const Signals& signals);

}  // namespace unidle::diagnose::detail
