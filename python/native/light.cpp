// _unidle_light: the shim's patch of batch fetches while steps are only marked
// (python/shim/_unidle_shim/loop/short_steps.py), written to touch as few memory pages as possible.
//
// A training step evicts the data of a patch from the caches between two calls. So the memory that a patch touches
// determines its cost, not the instructions that it executes: 7 to 11 us per call in Python, whose instructions take
// 1 us; about 3 us here. Only the stable ABI of Python 3.9 is used, so that one library serves all later versions.
// Where it cannot be loaded, Python code does the same.
//
// Called with the interpreter lock held; not for interpreters without one. Throws nothing; failures are Python
// exceptions.
#include "prompt_lock.h"
#include "stack.h"
#include "stand_in.h"  // has Python.h
// After Python.h, whose types it needs.
#include <structmember.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <initializer_list>

namespace {

struct Times {
  long long asked, got;  // ns, CLOCK_MONOTONIC; `asked` is written last: 0 means no mark

  void set(long long t0, long long t1) {
    __atomic_store_n(&got, t1, __ATOMIC_RELAXED);
    __atomic_store_n(&asked, t0, __ATOMIC_RELEASE);
  }
};

/// Replaces an iterator's __next__, and stores when each batch was requested and received. References are owned; `key`
/// is only compared.
struct Fetching {
  PyObject ob_base;
  PyObject* original;  // the patched function
  const void* key;     // the followed iterator
  long long until_ns;
  Times* times;
  Py_ssize_t count, most;
  char alive;   // the stretch continues
  char asking;  // a batch is being fetched
  char owns;    // `times` is ours; otherwise it is in the file of the stretch, which stays mapped
  // The members below are used only when the stretch ends.
  PyObject* fallback;  // called for other iterators, and after the stretch
  PyObject* over;      // (loop, iterator, t0, error): a fetch raised
  PyObject* loop;
  PyObject* dict;
};

PyObject* method_type;

long long now_ns() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1'000'000'000LL + time.tv_nsec;
}

/// Keeps the current exception unless the callback raises another one, which ends the program after the requested
/// number of steps.
void tell_over(const Fetching& fetching, PyObject* iterator, long long t0) {
  unidle_light::Pending pending;
  PyErr_NormalizeException(&pending.kind, &pending.error, &pending.trace);
  PyObject* begin = PyLong_FromLongLong(t0);
  PyObject* raised = pending.error == nullptr ? Py_None : pending.error;
  PyObject* told = begin == nullptr
                       ? nullptr
                       : PyObject_CallFunctionObjArgs(fetching.over, fetching.loop, iterator, begin, raised, nullptr);
  Py_XDECREF(begin);
  pending.settle(told);
}

PyObject* fetch(Fetching& fetching, PyObject* iterator, PyObject* args, PyObject* kwargs) {
  const long long t0 = now_ns();
  if (t0 >= fetching.until_ns || fetching.count >= fetching.most) {
    PyObject* seen = PyObject_CallMethod(fetching.loop, "look_up", nullptr);
    Py_XDECREF(seen);
    return seen != nullptr ? PyObject_Call(fetching.fallback, args, kwargs) : nullptr;
  }
  fetching.asking = 1;
  PyObject* batch = PyObject_Call(fetching.original, args, kwargs);
  fetching.asking = 0;
  if (batch == nullptr) {
    tell_over(fetching, iterator, t0);
  } else if (fetching.count < fetching.most) {  // meanwhile another thread may have fetched from the same iterator
    fetching.times[fetching.count++].set(t0, now_ns());
  }
  return batch;
}

PyObject* call(PyObject* self, PyObject* args, PyObject* kwargs) {
  auto& fetching = *reinterpret_cast<Fetching*>(self);
  PyObject* iterator = PyTuple_Size(args) > 0 ? PyTuple_GetItem(args, 0) : nullptr;
  if (iterator != fetching.key || fetching.alive == 0) {
    return PyObject_Call(fetching.fallback, args, kwargs);
  }
  Py_IncRef(self);  // released when the stretch ends
  PyObject* batch = fetch(fetching, iterator, args, kwargs);
  Py_DecRef(self);
  return batch;
}

PyObject* bind(PyObject* self, PyObject* instance, PyObject*) {
  if (instance == nullptr || instance == Py_None) {
    Py_IncRef(self);
    return self;
  }
  return PyObject_CallFunctionObjArgs(method_type, self, instance, nullptr);
}

PyObject* owned(PyObject* object) {
  Py_IncRef(object);
  return object;
}

PyObject* make(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject *original, *fallback, *over, *loop;
  unsigned long long key = 0;
  long long until_ns = 0;
  Py_ssize_t most = 0;
  unsigned long long shared = 0;  // address of zeros for `most` times that outlive this object; 0: own memory
  if (PyArg_ParseTuple(args, "OOOKLnO|K:Fetching", &original, &fallback, &over, &key, &until_ns, &most, &loop,
                       &shared) == 0) {
    return nullptr;
  }
  if (most < 1 || most > (Py_ssize_t{1} << 24)) {
    PyErr_SetString(PyExc_ValueError, "Fetching: most is 1 to 2^24");
    return nullptr;
  }
  auto* times = shared != 0 ? reinterpret_cast<Times*>(static_cast<uintptr_t>(shared))
                            : static_cast<Times*>(malloc(static_cast<size_t>(most) * sizeof(Times)));
  PyObject* self =
      times == nullptr ? PyErr_NoMemory() : reinterpret_cast<allocfunc>(PyType_GetSlot(type, Py_tp_alloc))(type, 0);
  if (self == nullptr) {
    if (shared == 0) {
      free(times);
    }
    return nullptr;
  }
  auto& fetching = *reinterpret_cast<Fetching*>(self);  // zero-initialised
  fetching.original = owned(original);
  fetching.key = reinterpret_cast<const void*>(static_cast<uintptr_t>(key));
  fetching.until_ns = until_ns;
  fetching.times = times;
  fetching.most = most;
  fetching.alive = 1;
  fetching.owns = shared == 0 ? 1 : 0;
  fetching.fallback = owned(fallback);
  fetching.over = owned(over);
  fetching.loop = owned(loop);
  return self;
}

void destroy(PyObject* self) {
  auto& fetching = *reinterpret_cast<Fetching*>(self);
  for (PyObject* each : {fetching.original, fetching.fallback, fetching.over, fetching.loop, fetching.dict}) {
    Py_XDECREF(each);
  }
  if (fetching.owns != 0) {
    free(fetching.times);
  }
  PyTypeObject* type = Py_TYPE(self);
  reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(self);
  Py_DecRef(reinterpret_cast<PyObject*>(type));
}

/// Needed by functools.update_wrapper.
PyObject* dict_of(PyObject* self, void*) {
  auto& fetching = *reinterpret_cast<Fetching*>(self);
  if (fetching.dict == nullptr && (fetching.dict = PyDict_New()) == nullptr) {
    return nullptr;
  }
  return owned(fetching.dict);
}

template <long long Times::*Field>
PyObject* list_of(PyObject* self, void*) {
  const auto& fetching = *reinterpret_cast<Fetching*>(self);
  PyObject* list = PyList_New(fetching.count);
  for (Py_ssize_t i = 0; list != nullptr && i < fetching.count; ++i) {
    PyObject* number = PyLong_FromLongLong(fetching.times[i].*Field);
    if (number == nullptr || PyList_SetItem(list, i, number) != 0) {
      Py_DecRef(list);
      return nullptr;
    }
  }
  return list;
}

PyGetSetDef computed[] = {{"__dict__", dict_of, nullptr, nullptr, nullptr},
                          {"asked", list_of<&Times::asked>, nullptr, "ns, of each batch", nullptr},
                          {"got", list_of<&Times::got>, nullptr, "ns, of each batch", nullptr},
                          {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyMemberDef members[] = {{"alive", T_BOOL, offsetof(Fetching, alive), 0, "the stretch is going on"},
                         {"asking", T_BOOL, offsetof(Fetching, asking), READONLY, "a batch is being fetched"},
                         {"__dictoffset__", T_PYSSIZET, offsetof(Fetching, dict), READONLY, nullptr},
                         {nullptr, 0, 0, 0, nullptr}};
PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(make)},
                       {Py_tp_dealloc, reinterpret_cast<void*>(destroy)},
                       {Py_tp_call, reinterpret_cast<void*>(call)},
                       {Py_tp_descr_get, reinterpret_cast<void*>(bind)},
                       {Py_tp_getset, computed},
                       {Py_tp_members, members},
                       {0, nullptr}};
PyType_Spec fetching_type = {"_unidle_light.Fetching", sizeof(Fetching), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_METHOD_DESCRIPTOR, slots};

int execute(PyObject* module) {
  PyObject* types = PyImport_ImportModule("types");
  method_type = types == nullptr ? nullptr : PyObject_GetAttrString(types, "MethodType");
  Py_XDECREF(types);
  PyObject* type = method_type == nullptr ? nullptr : PyType_FromSpec(&fetching_type);
  if (type == nullptr || PyModule_AddObject(module, "Fetching", type) != 0) {
    Py_XDECREF(type);
    return -1;
  }
  return 0;
}

PyModuleDef_Slot module_slots[] = {{Py_mod_exec, reinterpret_cast<void*>(execute)}, {0, nullptr}};
PyMethodDef functions[] = {{"stand_in", unidle_light::stand_in, METH_VARARGS, nullptr},
                           {"allow_prompt_lock", unidle_light::allow, METH_O, nullptr},
                           {"sleep_then_take", unidle_light::sleep_then_take, METH_O, nullptr},
                           {"go_on", unidle_light::go_on, METH_NOARGS, nullptr},
                           {"before_fork", unidle_light::before_fork, METH_NOARGS, nullptr},
                           {"after_fork", unidle_light::after_fork, METH_NOARGS, nullptr},
                           {"after_fork_in_child", unidle_light::after_fork_in_child, METH_NOARGS, nullptr},
                           {"stack_of", unidle_light::stack_of, METH_VARARGS, nullptr},
                           {"cpu_of_others", unidle_light::cpu_of_others, METH_O, nullptr},
                           {nullptr, nullptr, 0, nullptr}};
PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_unidle_light", nullptr, 0,      functions,
                          module_slots,          nullptr,         nullptr, nullptr};

}  // namespace

PyMODINIT_FUNC PyInit__unidle_light() { return PyModuleDef_Init(&definition); }
