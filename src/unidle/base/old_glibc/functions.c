// Functions of the C library that glibc 2.28 lacks, which every PyTorch can run on. Linked into the programs and
// into libunidle.so, they also serve the libraries that a wheel brings along (tools/old_symbols.py).
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

// 2.33: before, these were not functions of the shared library.
int fstatat(int folder, const char* restrict path, struct stat* restrict found, int flags) {
  return (int)syscall(SYS_newfstatat, folder, path, found, flags);
}
int stat(const char* restrict path, struct stat* restrict found) { return fstatat(AT_FDCWD, path, found, 0); }
int lstat(const char* restrict path, struct stat* restrict found) {
  return fstatat(AT_FDCWD, path, found, AT_SYMLINK_NOFOLLOW);
}
int fstat(int descriptor, struct stat* found) { return (int)syscall(SYS_fstat, descriptor, found); }

// The same for callers that asked for files over 2 GiB, which 64 bits always have.
_Static_assert(sizeof(struct stat) == sizeof(struct stat64), "one layout");
int stat64(const char* restrict path, struct stat64* restrict found) { return stat(path, (struct stat*)found); }
int lstat64(const char* restrict path, struct stat64* restrict found) { return lstat(path, (struct stat*)found); }
int fstat64(int descriptor, struct stat64* found) { return fstat(descriptor, (struct stat*)found); }

// 2.32: says when locks can be left out. "No" is always right.
char __libc_single_threaded = 0;

// 2.34. Callers do without it where the kernel has none.
int close_range(unsigned first, unsigned last, int flags) { return (int)syscall(SYS_close_range, first, last, flags); }

// 2.36
uint32_t arc4random(void) {
  uint32_t number = 0;
  while (syscall(SYS_getrandom, &number, sizeof number, 0) != (long)sizeof number && errno == EINTR) {
  }
  return number;
}

// 2.32
const char* sigabbrev_np(int number) {
  static const char* const names[] = {
      [SIGHUP] = "HUP",       [SIGINT] = "INT",       [SIGQUIT] = "QUIT", [SIGILL] = "ILL",   [SIGTRAP] = "TRAP",
      [SIGABRT] = "ABRT",     [SIGBUS] = "BUS",       [SIGFPE] = "FPE",   [SIGKILL] = "KILL", [SIGUSR1] = "USR1",
      [SIGSEGV] = "SEGV",     [SIGUSR2] = "USR2",     [SIGPIPE] = "PIPE", [SIGALRM] = "ALRM", [SIGTERM] = "TERM",
      [SIGSTKFLT] = "STKFLT", [SIGCHLD] = "CHLD",     [SIGCONT] = "CONT", [SIGSTOP] = "STOP", [SIGTSTP] = "TSTP",
      [SIGTTIN] = "TTIN",     [SIGTTOU] = "TTOU",     [SIGURG] = "URG",   [SIGXCPU] = "XCPU", [SIGXFSZ] = "XFSZ",
      [SIGVTALRM] = "VTALRM", [SIGPROF] = "PROF",     [SIGWINCH] = "WINCH", [SIGPOLL] = "POLL", [SIGPWR] = "PWR",
      [SIGSYS] = "SYS"};
  return number > 0 && (size_t)number < sizeof names / sizeof *names ? names[number] : NULL;
}

static struct timespec now_of(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return now;
}

// Looked up when the library is loaded: dlsym takes a lock, which a fork would copy.
typedef int (*Wait)(pthread_cond_t*, pthread_mutex_t*, clockid_t, const struct timespec*);
static Wait wait_of_library;
__attribute__((constructor)) static void find_wait(void) {
  wait_of_library = (Wait)dlsym(RTLD_NEXT, "pthread_cond_clockwait");
}

// 2.30. Without it, the time left is waited for on the clock that there is: a clock that is set meanwhile makes
// the wait longer or shorter, and callers look at their own clock again.
int pthread_cond_clockwait(pthread_cond_t* restrict condition, pthread_mutex_t* restrict mutex, clockid_t clock,
                           const struct timespec* restrict until) {
  if (wait_of_library != NULL) {
    return wait_of_library(condition, mutex, clock, until);
  }
  const struct timespec now = now_of(clock);
  struct timespec end = now_of(CLOCK_REALTIME);
  end.tv_sec += until->tv_sec - now.tv_sec;
  end.tv_nsec += until->tv_nsec - now.tv_nsec;
  if (end.tv_nsec < 0) {
    end.tv_nsec += 1000000000;
    --end.tv_sec;
  } else if (end.tv_nsec >= 1000000000) {
    end.tv_nsec -= 1000000000;
    ++end.tv_sec;
  }
  return pthread_cond_timedwait(condition, mutex, &end);
}
