// Builtins that stand for builtins of others, see stand_in.cpp.
#pragma once

#define Py_LIMITED_API 0x03090000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

namespace unidle_light {

/// The exception that is set, taken off while somebody is told of it.
struct Pending {
  PyObject *kind = nullptr, *error = nullptr, *trace = nullptr;

  Pending() { PyErr_Fetch(&kind, &error, &trace); }

  /// It is set again, unless telling (`told`, a new reference) raised another one.
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

/// (original, before, after, owner): what stands for a builtin function (`owner` is None), or for a method that the
/// class `owner` defines. None when all places for such are taken. The same kind of object as the original.
PyObject* stand_in(PyObject* module, PyObject* args);

}  // namespace unidle_light
