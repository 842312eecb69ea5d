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
//   3.13     the same function; Py_AddPendingCall interrupts the main thread, and no other one
//   3.14     Py_AddPendingCall, which is public: only while the main thread trains (stack_sampler.py)
//
// The private functions are looked up by name, in versions whose sources were read. Without them Python sleeps.
//
// To 3.11 a program that reads the switch interval finds ours in one of a thousand calls. After a program changes the
// interval, the sampler leaves it alone. A fork by another thread while the holder waits would leave its queue of calls
// blocked in the child, so that forks wait for the holder.
#include "prompt_lock.h"

#include <dlfcn.h>
#include <linux/futex.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <ctime>

namespace unidle_light {

namespace {

constexpr unsigned long kSoon_us = 11;  // a switch interval that nobody sets
// In this interval, and what the kernel adds, the sampler asks until the lock is released. That takes 15 % of a CPU
// where a call keeps the lock for long. Each look may take this much CPU time, 0.3 % at 20 looks a second; after more,
// looks wait as any thread does until it is made up for. A collection of garbage keeps the lock for 80 ms: of one such
// wait only little is made up for, because looks that wait see the wrong lines; of waits in a row more and more.
constexpr long kCpuOfLook_ns = 150'000;
constexpr long kMostSaved = 10, kLeastOwed = 10, kMostOwed = 200;  // looks
constexpr long kForgotten_ns = kCpuOfLook_ns / 10;                 // in each look that did not wait long
constexpr long kLongest_ns = 1'000'000;  // that a thread waits for the sampler, which may get no CPU
constexpr timespec kBrief{0, 10'000};
constexpr int kMostBriefs = 2000;  // where a fork or the end of Python waits

using Call = int (*)(void*);

struct Interpreter {
  int minor = std::strncmp(Py_GetVersion(), "3.", 2) == 0 ? std::atoi(Py_GetVersion() + 2) : 0;  // "3.11.7 ..."
  unsigned long (*interval)() = nullptr;
  void (*set_interval)(unsigned long) = nullptr;
  int (*add_call)(PyInterpreterState*, Call, void*, int main_thread_only) = nullptr;  // 3.13: flags, and 0 is none

  Interpreter() {
    if (minor >= 9 && minor <= 11) {
      find("_PyEval_GetSwitchInterval", interval);
      find("_PyEval_SetSwitchInterval", set_interval);
    } else if (minor == 12 || minor == 13) {
      find("_PyEval_AddPendingCall", add_call);
    }
  }

  bool by_interval() const { return interval != nullptr && set_interval != nullptr; }
  bool is_prompt() const { return minor >= 14 || add_call != nullptr || by_interval(); }

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

// No lock guards these: a child process may be forked at any time.
std::atomic<bool> allowed, forking;
std::atomic<bool> asking;  // a call is being added, or the interval changed
std::atomic<int> asked;    // by the sampler, until it has looked
std::atomic<int> giving;   // threads that wait for it
std::atomic<bool> gave;    // a thread gave the lock up for this look
// A call waits in the interpreter's queue, which is short and also the program's: the thread that runs it may be within
// a call for long.
std::atomic<bool> queued;
std::atomic<unsigned long> usual_us;  // the program's switch interval; 0: not known yet
thread_local bool is_sampler;
// By the sampler, beyond what its looks may take, and the most of it.
long owed_ns, most_owed_ns = kLeastOwed * kCpuOfLook_ns;

long thread_cpu_ns() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return time.tv_sec * 1'000'000'000L + time.tv_nsec;
}

/// How often this thread has waited for something. One that only loses its CPU to others does not.
long waits() {
  rusage used{};
  getrusage(RUSAGE_THREAD, &used);
  return used.ru_nvcsw;
}

long futex(int operation, int value, const timespec* longest) {
  return syscall(SYS_futex, &asked, operation, value, longest, nullptr, 0);
}

void wake() {
  if (asked.exchange(0) != 0) {
    futex(FUTEX_WAKE_PRIVATE, INT_MAX, nullptr);
  }
}

/// A look took that much CPU time for its lock.
void pay(long cpu_ns) {
  const bool is_long = cpu_ns > kLeastOwed * kCpuOfLook_ns;
  most_owed_ns = std::clamp(is_long ? 2 * most_owed_ns : most_owed_ns - kForgotten_ns, kLeastOwed * kCpuOfLook_ns,
                            kMostOwed * kCpuOfLook_ns);
  owed_ns = std::clamp(owed_ns + cpu_ns - kCpuOfLook_ns, -kMostSaved * kCpuOfLook_ns, most_owed_ns);
}

/// Called in a thread that holds the lock. The sampler itself may be that thread.
int give_way(void*) {
  queued = false;
  if (is_sampler || asked.load() == 0) {
    return 0;
  }
  const int error = errno;
  gave = true;
  ++giving;
  PyThreadState* state = PyEval_SaveThread();
  const timespec longest{0, kLongest_ns};
  while (asked.load() != 0) {
    if (futex(FUTEX_WAIT_PRIVATE, 1, &longest) != 0 && errno != EAGAIN) {
      asked = 0;  // too long, or a signal arrived
    }
  }
  PyEval_RestoreThread(state);
  --giving;
  errno = error;
  return 0;
}

/// Unless the program has set another one.
void restore_interval() {
  if (interpreter().by_interval() && interpreter().interval() == kSoon_us && usual_us != 0) {
    interpreter().set_interval(usual_us);
  }
}

/// Shortens the switch interval, unless the program changes it while it runs: it may have read ours, and what it saves
/// and sets again later would be wrong.
void shorten_interval() {
  const Interpreter& python = interpreter();
  if (python.interval() == usual_us) {
    python.set_interval(kSoon_us);
  } else {
    allowed = false;
    restore_interval();
  }
}

/// Interrupts the holder of the lock. Called without the lock.
void ask(PyInterpreterState* main) {
  const Interpreter& python = interpreter();
  if (python.by_interval()) {
    shorten_interval();
    return;
  }
  asked = 1;
  if (!queued.exchange(true)) {
    const int failed =
        python.add_call != nullptr ? python.add_call(main, give_way, nullptr, 0) : Py_AddPendingCall(give_way, nullptr);
    if (failed != 0) {
      queued = false;
    }
  }
}

void wait_while_asking() {
  for (int i = 0; asking && i < kMostBriefs; ++i) {
    nanosleep(&kBrief, nullptr);
  }
}

}  // namespace

PyObject* allow(PyObject*, PyObject* yes) {
  const int wanted = PyObject_IsTrue(yes);
  if (wanted < 0) {
    return nullptr;
  }
  if (wanted != 0 && interpreter().by_interval() && usual_us == 0) {
    usual_us = interpreter().interval();  // now, as later the program may have changed it for a moment
  }
  allowed = wanted != 0 && interpreter().is_prompt();
  if (wanted == 0) {
    wait_while_asking();  // the interpreter takes down what a call needs when it ends
    restore_interval();
  }
  return PyBool_FromLong(allowed ? 1 : 0);
}

PyObject* before_fork(PyObject*, PyObject*) {
  forking = true;
  wait_while_asking();
  wake();
  for (int i = 0; giving > 0 && i < kMostBriefs; ++i) {
    PyThreadState* state = PyEval_SaveThread();
    nanosleep(&kBrief, nullptr);
    PyEval_RestoreThread(state);
  }
  Py_RETURN_NONE;
}

PyObject* after_fork(PyObject*, PyObject*) {
  forking = false;
  Py_RETURN_NONE;
}

PyObject* after_fork_in_child(PyObject*, PyObject*) {
  allowed = forking = asking = queued = false;
  asked = giving = 0;
  owed_ns = 0;
  most_owed_ns = kLeastOwed * kCpuOfLook_ns;
  restore_interval();
  Py_RETURN_NONE;
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
  gave = false;
  const bool now = allowed && !forking && owed_ns <= 0;
  if (now) {
    ask(main);
  }
  asking = false;
  const long begin = thread_cpu_ns();
  const long waited = waits();
  PyEval_RestoreThread(state);
  const bool was_held = gave || waits() != waited;
  restore_interval();
  if (interpreter().by_interval()) {
    pay(thread_cpu_ns() - begin);
  }
  if (!now) {
    Py_RETURN_NONE;  // the lock came with the next call that released it
  }
  return PyBool_FromLong(was_held ? 1 : 0);
}

PyObject* go_on(PyObject*, PyObject*) {
  wake();
  Py_RETURN_NONE;
}

}  // namespace unidle_light
