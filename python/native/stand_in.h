// Builtins that stand for builtins of others, see stand_in.cpp.
#pragma once

#define Py_LIMITED_API 0x03090000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

namespace unidle_light {

/// (original, before, after, owner): what stands for a builtin function (`owner` is None), or for a method that the
/// class `owner` defines. None when all places for such are taken. The same kind of object as the original.
PyObject* stand_in(PyObject* module, PyObject* args);

}  // namespace unidle_light
