// The stacks of threads, see stack.cpp.
#pragma once

#include "stand_in.h"  // has Python.h

namespace unidle_light {

/// (thread, deepest): [(code, line)] of a thread's stack, the innermost first, at most `deepest` of them. Empty if
/// there is no such thread.
PyObject* stack_of(PyObject* module, PyObject* args);

/// (thread): nanoseconds of CPU time that all threads of Python but that one and the calling one have used.
PyObject* cpu_of_others(PyObject* module, PyObject* thread);

}  // namespace unidle_light
