// Builtins that wrap other builtins.
//
// A patch in Python puts a frame between the program and the function that it calls. But a warning raised in C names
// the innermost Python frame and is filtered by it, and torch.jit, the compiler and pickle ask whether a function is a
// builtin. So the wrapper of a builtin has to be a builtin. Each has its own static slot: a builtin can hold only one
// object, its `__self__`.
//
// before(args, kwargs) is called first. If it returns None, nothing else is done; if a list, its only item is the
// result; anything else is passed to after(it, args, kwargs, result) when the call is over, where the result is None if
// the call raised. Both guard themselves (guard.py); exceptions that still leave them are the program's.
//
// Called with the interpreter lock held; not for interpreters without one. Throws nothing.
#include "stand_in.h"

#include <array>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

namespace unidle_light {
namespace {

struct Place {
  PyObject *original, *before, *after;  // owned, never released
  bool is_method;
};

constexpr size_t kPlaces = 32;
std::array<Place, kPlaces> places;
std::array<PyMethodDef, kPlaces> definitions;
size_t taken = 0;

/// The call raised: calls `after`, and keeps the exception unless `after` raises another one.
void tell_raised(const Place& place, PyObject* seen, PyObject* args, PyObject* kwargs) {
  Pending pending;
  pending.settle(PyObject_CallFunctionObjArgs(place.after, seen, args, kwargs, Py_None, nullptr));
}

PyObject* watched(const Place& place, PyObject* seen, PyObject* args, PyObject* kwargs) {
  PyObject* result = PyObject_Call(place.original, args, kwargs);
  if (result == nullptr) {
    tell_raised(place, seen, args, kwargs);
    return nullptr;
  }
  PyObject* told = PyObject_CallFunctionObjArgs(place.after, seen, args, kwargs, result, nullptr);
  if (told == nullptr) {
    Py_DecRef(result);
    return nullptr;
  }
  Py_DecRef(told);
  return result;
}

PyObject* pass(const Place& place, PyObject* args, PyObject* kwargs) {
  PyObject* seen = PyObject_CallFunctionObjArgs(place.before, args, kwargs, nullptr);
  if (seen == nullptr) {
    return nullptr;
  }
  PyObject* result = nullptr;
  if (seen == Py_None) {
    result = PyObject_Call(place.original, args, kwargs);
  } else if (PyList_Check(seen) != 0) {
    result = PyList_GetItem(seen, 0);
    Py_XINCREF(result);
  } else {
    result = watched(place, seen, args, kwargs);
  }
  Py_DecRef(seen);
  return result;
}

/// The arguments, preceded by the method's object.
PyObject* with_self(PyObject* self, PyObject* args) {
  const Py_ssize_t count = PyTuple_Size(args);
  PyObject* all = PyTuple_New(count + 1);
  for (Py_ssize_t i = 0; all != nullptr && i <= count; ++i) {
    PyObject* each = i == 0 ? self : PyTuple_GetItem(args, i - 1);
    Py_IncRef(each);
    PyTuple_SetItem(all, i, each);
  }
  return all;
}

PyObject* call(size_t index, PyObject* self, PyObject* args, PyObject* kwargs) {
  const Place& place = places[index];
  PyObject* all = args;
  if (place.is_method) {
    all = with_self(self, args);
  } else {
    Py_IncRef(all);
  }
  PyObject* named = kwargs;
  if (named == nullptr) {
    named = PyDict_New();
  } else {
    Py_IncRef(named);
  }
  PyObject* result = all != nullptr && named != nullptr ? pass(place, all, named) : nullptr;
  Py_XDECREF(all);
  Py_XDECREF(named);
  return result;
}

template <size_t Index>
PyObject* entry(PyObject* self, PyObject* args, PyObject* kwargs) {
  return call(Index, self, args, kwargs);
}

template <size_t... Index>
constexpr std::array<PyCFunctionWithKeywords, kPlaces> all_entries(std::index_sequence<Index...>) {
  return {entry<Index>...};
}

constexpr auto entries = all_entries(std::make_index_sequence<kPlaces>());

/// The text of an attribute, or an empty string.
std::string text_of(PyObject* object, const char* name) {
  PyObject* value = PyObject_GetAttrString(object, name);
  PyObject* bytes = value != nullptr && PyUnicode_Check(value) != 0 ? PyUnicode_AsUTF8String(value) : nullptr;
  std::string text = bytes != nullptr ? PyBytes_AsString(bytes) : "";
  Py_XDECREF(bytes);
  Py_XDECREF(value);
  PyErr_Clear();
  return text;
}

/// In the form of a builtin's documentation: its signature before the text.
std::string documentation(PyObject* original) {
  const std::string signature = text_of(original, "__text_signature__"), text = text_of(original, "__doc__");
  return signature.empty() ? text : text_of(original, "__name__") + signature + "\n--\n\n" + text;
}

PyMethodDef* define(size_t index, PyObject* original) {
  PyMethodDef& definition = definitions[index];
  const std::string doc = documentation(original);
  definition.ml_name = strdup(text_of(original, "__name__").c_str());
  definition.ml_doc = doc.empty() ? nullptr : strdup(doc.c_str());
  definition.ml_meth = reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(entries[index]));
  definition.ml_flags = METH_VARARGS | METH_KEYWORDS;
  return definition.ml_name == nullptr ? nullptr : &definition;
}

PyObject* function(PyMethodDef* definition, PyObject* original) {
  PyObject* self = PyObject_GetAttrString(original, "__self__");
  PyObject* module = PyObject_GetAttrString(original, "__module__");
  PyErr_Clear();
  PyObject* made = PyCFunction_NewEx(definition, self == Py_None ? nullptr : self, module);
  Py_XDECREF(self);
  Py_XDECREF(module);
  return made;
}

}  // namespace

PyObject* stand_in(PyObject*, PyObject* args) {
  PyObject *original, *before, *after, *owner;
  if (PyArg_ParseTuple(args, "OOOO:stand_in", &original, &before, &after, &owner) == 0) {
    return nullptr;
  }
  if (taken == kPlaces) {
    Py_IncRef(Py_None);
    return Py_None;
  }
  PyMethodDef* definition = define(taken, original);
  if (definition == nullptr) {
    return PyErr_NoMemory();
  }
  for (PyObject* each : {original, before, after}) {
    Py_IncRef(each);
  }
  places[taken++] = {original, before, after, owner != Py_None};
  return owner == Py_None ? function(definition, original)
                          : PyDescr_NewMethod(reinterpret_cast<PyTypeObject*>(owner), definition);
}

}  // namespace unidle_light
