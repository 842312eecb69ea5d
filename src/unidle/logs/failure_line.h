// What one line of output says of a failure: one grammar for logs, for jobs and for runs that are recorded.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace unidle::logs {

/// Who speaks. Words alone are no failure ("to avoid CUDA out of memory errors"); each speaker has forms of its own.
enum class Speaker : std::uint8_t {
  kProgram,    // a sentence that begins with the failure
  kPython,     // "KeyError: 4711", alone or at the end of a traceback
  kRuntime,    // C++, Python's own crash handler, MPI, CUDA's collectives
  kShell,      // "Killed", "line 42: 12345 Segmentation fault (core dumped)"
  kLauncher,   // torchrun, horovodrun, deepspeed, mpirun, srun: how a process of several ended
  kKernel,     // dmesg
  kScheduler,  // Slurm, PBS, LSF, Kubernetes
};

/// What there was too little of.
enum class Lack : std::uint8_t { kNone, kDeviceMemory, kHostMemory, kSharedMemory };

/// Whose fault it is, the one that explains most first: when one process of several fails, others fail with it.
enum class Blame : std::uint8_t {
  kOwn,
  kPeer,      // of a process that this one talked to
  kLauncher,  // of a process that this one had started, or what only follows from an earlier failure
};

struct FailureFacts {
  Speaker speaker = Speaker::kProgram;
  Lack lack = Lack::kNone;
  Blame blame = Blame::kOwn;
  int signal = 0;     // that ended a process
  int exit_code = 0;  // of a process
  std::optional<int> rank;
  std::optional<double> timeout_s;  // of a collective that not every rank came to
  bool hint = false;                // of level WARNING or below, or with what the program does about it
};

struct FailureLine {
  FailureFacts facts;
  std::string_view text;  // the line without times, ranks, loggers and levels before it
};

/// Nothing where the line is no failure of a process or of the run. Thread-safe.
std::optional<FailureLine> failure_in(std::string_view line);

/// A line of level ERROR or above. It need not be a failure: programs log errors and go on.
bool is_error_line(std::string_view line);

/// What a message says that is known to be one of a failure: "KeyError: 4711", or the last line of a traceback.
FailureFacts facts_of_message(std::string_view message);

}  // namespace unidle::logs
