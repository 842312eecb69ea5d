// The stack of a thread, see stack.cpp.
#pragma once

#include "stand_in.h"  // has Python.h

namespace unidle_light {

/// (thread, deepest): [(code, line)] of a thread's stack, the innermost first, at most `deepest` of them. Empty if
/// there is no such thread.
PyObject* stack_of(PyObject* module, PyObject* args);

}  // namespace unidle_light
