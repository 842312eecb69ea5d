// Builtins that wrap other builtins, see stand_in.cpp.
#pragma once

#define Py_LIMITED_API 0x03090000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

namespace unidle_light {

/// Takes off the current exception during a callback.
struct Pending {
  PyObject *kind = nullptr, *error = nullptr, *trace = nullptr;

  Pending() { PyErr_Fetch(&kind, &error, &trace); }

  /// Restores it, unless the callback raised another one. `told` is a new reference to the callback's result.
  void settle(PyObject* told) {
    if (told != nullptr) {
      Py_DecRef(told);
      PyErr_Restore(kind, error, trace);
      return;
    }
    Py_XDECREF(kind);
    Py_XDECREF(error);
    Py_XDECREF(trace);
  }
};

/// (original, before, after, owner): returns a wrapper for a builtin function (`owner` is None), or for a method that
/// the class `owner` defines. It is of the same type as the original. None when all slots are in use.
PyObject* stand_in(PyObject* module, PyObject* args);

}  // namespace unidle_light
