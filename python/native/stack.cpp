// A thread's stack for the sampler, read without running Python code: no other thread runs meanwhile, so none sees that
// the collection of garbage is off. Collected in our thread, the program's destructors would run there.
#include "stack.h"

#include <pthread.h>

#include <ctime>

namespace unidle_light {

namespace {

/// An owned reference.
struct Reference {
  PyObject* object = nullptr;

  explicit Reference(PyObject* owned) : object(owned) {}
  Reference(const Reference&) = delete;
  Reference& operator=(const Reference&) = delete;
  ~Reference() { Py_XDECREF(object); }
};

/// No collection of garbage while it lives. REQUIRES: the functions of gc are builtins.
class WithoutCollection {
 public:
  WithoutCollection() : gc_(PyDict_GetItemString(PyImport_GetModuleDict(), "gc")) {
    Py_XINCREF(gc_);
    const Reference on(call("isenabled"));
    was_on_ = on.object == Py_True;
    if (was_on_) {
      const Reference done(call("disable"));
    }
  }
  WithoutCollection(const WithoutCollection&) = delete;
  WithoutCollection& operator=(const WithoutCollection&) = delete;
  ~WithoutCollection() {
    if (was_on_) {
      Pending pending;
      pending.settle(call("enable"));
    }
    Py_XDECREF(gc_);
  }

 private:
  PyObject* call(const char* name) const { return gc_ == nullptr ? nullptr : PyObject_CallMethod(gc_, name, nullptr); }

  PyObject* gc_;
  bool was_on_ = false;
};

/// The frame's line; between two lines Python reports none, and the function's first line is returned.
PyObject* line_of(PyObject* frame, PyObject* code) {
  PyObject* line = PyObject_GetAttrString(frame, "f_lineno");
  if (line != Py_None) {
    return line;
  }
  Py_DecRef(line);
  return PyObject_GetAttrString(code, "co_firstlineno");
}

/// Appends (code, line); false after an exception.
bool append(PyObject* stack, PyObject* frame) {
  const Reference code(PyObject_GetAttrString(frame, "f_code"));
  const Reference line(code.object == nullptr ? nullptr : line_of(frame, code.object));
  const Reference entry(line.object == nullptr ? nullptr : PyTuple_Pack(2, code.object, line.object));
  return entry.object != nullptr && PyList_Append(stack, entry.object) == 0;
}

/// An owned dictionary, from a thread to its frame; nullptr after an exception.
PyObject* current_frames() {
  PyObject* function = PySys_GetObject("_current_frames");  // borrowed
  return function == nullptr ? PyDict_New() : PyObject_CallObject(function, nullptr);
}

}  // namespace

PyObject* stack_of(PyObject*, PyObject* args) {
  PyObject* thread = nullptr;
  Py_ssize_t deepest = 0;
  if (PyArg_ParseTuple(args, "On:stack_of", &thread, &deepest) == 0) {
    return nullptr;
  }
  const WithoutCollection off;
  const Reference frames(current_frames());
  PyObject* stack = frames.object == nullptr ? nullptr : PyList_New(0);
  PyObject* frame = stack == nullptr ? nullptr : PyDict_GetItemWithError(frames.object, thread);
  Py_XINCREF(frame);
  while (frame != nullptr && frame != Py_None && PyList_Size(stack) < deepest) {
    PyObject* outer = append(stack, frame) ? PyObject_GetAttrString(frame, "f_back") : nullptr;
    Py_DecRef(frame);
    frame = outer;
  }
  Py_XDECREF(frame);
  if (PyErr_Occurred() != nullptr) {
    Py_XDECREF(stack);
    return nullptr;
  }
  return stack;
}

PyObject* cpu_of_others(PyObject*, PyObject* thread) {
  const WithoutCollection off;
  const Reference frames(current_frames());
  const Reference self(PyLong_FromUnsignedLong(PyThread_get_thread_ident()));
  if (frames.object == nullptr || self.object == nullptr) {
    return nullptr;
  }
  long long sum_ns = 0;
  PyObject *other = nullptr, *frame = nullptr;  // borrowed
  for (Py_ssize_t i = 0; PyDict_Next(frames.object, &i, &other, &frame) != 0;) {
    const bool skipped =
        PyObject_RichCompareBool(other, thread, Py_EQ) == 1 || PyObject_RichCompareBool(other, self.object, Py_EQ) == 1;
    clockid_t clock = 0;
    timespec time{};
    // A thread that has a frame cannot end while the lock is held here.
    if (!skipped && pthread_getcpuclockid(static_cast<pthread_t>(PyLong_AsUnsignedLong(other)), &clock) == 0 &&
        clock_gettime(clock, &time) == 0) {
      sum_ns += time.tv_sec * 1'000'000'000LL + time.tv_nsec;
    }
  }
  return PyErr_Occurred() != nullptr ? nullptr : PyLong_FromLongLong(sum_ns);
}

}  // namespace unidle_light
