// Taking the interpreter's lock at once, see prompt_lock.cpp.
#pragma once

#include "stand_in.h"  // has Python.h

namespace unidle_light {

/// (yes): from now on, or no longer, the lock is taken promptly; not before a thread takes it, and not while the
/// interpreter ends. Returns whether it is: some versions of Python cannot do it.
PyObject* allow(PyObject* module, PyObject* yes);

/// (seconds): sleeps without the interpreter's lock, then takes it, as soon as its holder can give it up if that is
/// allowed. Only one thread of a process calls it, and go_on() soon afterwards. Returns whether another thread held the
/// lock: it was executing Python code, or a call in C that keeps it. None if the lock was not taken promptly.
PyObject* sleep_then_take(PyObject* module, PyObject* seconds);

/// For os.register_at_fork: before a fork, and after it in the parent and in the child, where nothing is allowed yet.
PyObject* before_fork(PyObject* module, PyObject* unused);
PyObject* after_fork(PyObject* module, PyObject* unused);
PyObject* after_fork_in_child(PyObject* module, PyObject* unused);

/// Lets the thread that gave way continue.
PyObject* go_on(PyObject* module, PyObject* unused);

}  // namespace unidle_light
