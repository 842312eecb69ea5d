// The stack sampler's way to the interpreter's lock (python/shim/_unidle_shim/facts/stack_sampler.py).
//
// A thread that wants the lock waits until its holder releases it, and asks for it after the switch interval, 5 ms.
// Nearly every call of torch releases it, so a sampler that merely waits sees the next call of torch, never the Python
// code before it: of code that held the lock for 45 % of the time, in pieces of up to a millisecond, it saw nothing.
// Here the holder gives the lock up at its next check, within microseconds, and waits until the sampler has looked.
//
//   to 3.11  the switch interval is short while the sampler waits; Py_AddPendingCall is of no use, because these
//            versions do not interrupt the main thread for the call of another thread (python/cpython#95820)
//   3.12     the holder runs a call of _PyEval_AddPendingCall; Py_AddPendingCall has the same fault there
//   3.13     Py_AddPendingCall, which is public
//
// The private functions are looked up by name, in versions whose sources were read. Without them Python sleeps.
#include "prompt_lock.h"

#include <dlfcn.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <ctime>

namespace unidle_light {

namespace {

constexpr unsigned long kSoon_us = 10;  // a switch interval that nobody sets
// In this interval, and what the kernel adds, the sampler asks until the lock is released. That takes 15 % of a CPU
// where a call keeps the lock for long, so that many looks later wait as any thread does: 0.2 % at 20 looks a second.
constexpr long kWaitOfPatientLook_ns = 650'000;
constexpr long kMostPatientLooks = 200;
constexpr long kLongest_ns = 1'000'000;  // that a thread waits for the sampler, which may get no CPU
constexpr timespec kBrief{0, 10'000};

using Call = int (*)(void*);

struct Interpreter {
  int minor = std::atoi(Py_GetVersion() + 2);  // "3.11.7 ..."
  unsigned long (*interval)() = nullptr;
  void (*set_interval)(unsigned long) = nullptr;
  int (*add_call)(PyInterpreterState*, Call, void*, int main_thread_only) = nullptr;

  Interpreter() {
    if (minor <= 11) {
      find("_PyEval_GetSwitchInterval", interval);
      find("_PyEval_SetSwitchInterval", set_interval);
    } else if (minor == 12) {
      find("_PyEval_AddPendingCall", add_call);
    }
  }

  bool is_prompt() const {
    return minor >= 13 || add_call != nullptr || (interval != nullptr && set_interval != nullptr);
  }

 private:
  template <class Function>
  static void find(const char* name, Function& function) {
    function = reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, name));
  }
};

const Interpreter& interpreter() {
  static const Interpreter kInterpreter;
  return kInterpreter;
}

// The sampler sets `asked`, and takes it back when it has looked. No lock: a child process may be forked meanwhile.
std::atomic<int> asked;
std::atomic<bool> allowed;
std::atomic<bool> asking;  // a call is being added, or the interval changed
// A call waits in the interpreter's queue, which is short and also the program's: the thread that runs it may be within
// a call for long.
std::atomic<bool> queued;
thread_local bool is_sampler;
long patient_looks;  // the sampler's

long clock_ns() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1'000'000'000L + time.tv_nsec;
}

long futex(int operation, int value, const timespec* longest) {
  return syscall(SYS_futex, &asked, operation, value, longest, nullptr, 0);
}

/// Called in a thread that holds the lock. The sampler itself may be that thread.
int give_way(void*) {
  queued = false;
  if (is_sampler || asked.load() == 0) {
    return 0;
  }
  PyThreadState* state = PyEval_SaveThread();
  const timespec longest{0, kLongest_ns};
  while (asked.load() != 0) {
    if (futex(FUTEX_WAIT_PRIVATE, 1, &longest) != 0 && errno != EAGAIN) {
      asked = 0;  // too long, or a signal arrived
    }
  }
  PyEval_RestoreThread(state);
  return 0;
}

/// Interrupts the holder of the lock. Called without the lock. Returns the switch interval to restore, 0 if none.
unsigned long ask(PyInterpreterState* main) {
  const Interpreter& python = interpreter();
  if (python.minor <= 11) {
    const unsigned long usual = python.interval();
    python.set_interval(kSoon_us);
    return usual;
  }
  asked = 1;
  if (!queued.exchange(true)) {
    const int failed =
        python.minor == 12 ? python.add_call(main, give_way, nullptr, 0) : Py_AddPendingCall(give_way, nullptr);
    if (failed != 0) {
      queued = false;
    }
  }
  return 0;
}

}  // namespace

PyObject* allow(PyObject*, PyObject* yes) {
  const int wanted = PyObject_IsTrue(yes);
  if (wanted < 0) {
    return nullptr;
  }
  if (wanted != 0) {
    asking = queued = false;  // a child process may be forked while they are set
  }
  allowed = wanted != 0 && interpreter().is_prompt();
  // The interpreter takes down what the calls need when it ends.
  for (int i = 0; wanted == 0 && asking && i < 1000; ++i) {
    nanosleep(&kBrief, nullptr);
  }
  return PyBool_FromLong(allowed ? 1 : 0);
}

PyObject* sleep_then_take(PyObject*, PyObject* seconds) {
  const double length = PyFloat_AsDouble(seconds);
  if (!(length >= 0 && length < 1e6)) {
    if (PyErr_Occurred() == nullptr) {
      PyErr_SetString(PyExc_ValueError, "sleep_then_take: 0 to 1e6 seconds");
    }
    return nullptr;
  }
  is_sampler = true;
  PyInterpreterState* main = PyInterpreterState_Get();
  PyThreadState* state = PyEval_SaveThread();
  const auto whole = static_cast<time_t>(length);
  const timespec time{whole, static_cast<long>((length - static_cast<double>(whole)) * 1e9)};
  nanosleep(&time, nullptr);
  asking = true;
  const unsigned long usual = allowed && patient_looks == 0 ? ask(main) : 0;
  asking = false;
  const long begin = clock_ns();
  PyEval_RestoreThread(state);
  patient_looks = usual != 0 ? std::min(kMostPatientLooks, (clock_ns() - begin) / kWaitOfPatientLook_ns)
                             : std::max(0L, patient_looks - 1);
  if (usual != 0 && interpreter().interval() == kSoon_us) {  // the program has not set another one
    interpreter().set_interval(usual);
  }
  Py_RETURN_NONE;
}

PyObject* go_on(PyObject*, PyObject*) {
  if (asked.exchange(0) != 0) {
    futex(FUTEX_WAKE_PRIVATE, INT_MAX, nullptr);
  }
  Py_RETURN_NONE;
}

}  // namespace unidle_light
