// Reads a failure from one line of output: one grammar for logs, jobs and recorded runs.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace unidle::logs {

/// The origin of a message. Words alone are not a failure ("to avoid CUDA out of memory errors"); each origin has its
/// own forms.
enum class Speaker : std::uint8_t {
  kProgram,    // a sentence that starts with the failure
  kPython,     // "KeyError: 4711", alone or at the end of a traceback
  kRuntime,    // C++, Python's crash handler, MPI, CUDA's collectives
  kShell,      // "Killed", "line 42: 12345 Segmentation fault (core dumped)"
  kLauncher,   // torchrun, horovodrun, deepspeed, mpirun, srun: how one of several processes ended
  kKernel,     // dmesg
  kScheduler,  // Slurm, PBS, LSF, Kubernetes
};

/// The resource that ran out.
enum class Lack : std::uint8_t { kNone, kDeviceMemory, kHostMemory, kSharedMemory };

/// The origin of the fault, most explanatory first: when one process of several fails, others fail with it.
enum class Blame : std::uint8_t {
  kOwn,
  kPeer,      // a process that this one communicates with
  kLauncher,  // a process that this one started, or a consequence of an earlier failure
};

struct FailureFacts {
  Speaker speaker = Speaker::kProgram;
  Lack lack = Lack::kNone;
  Blame blame = Blame::kOwn;
  int signal = 0;     // the signal that ended a process
  int exit_code = 0;  // of a process
  std::optional<int> rank;
  std::optional<double> timeout_s;  // of a collective that not all ranks reached
  bool hint = false;                // of level WARNING or below, or the program says how it continues
};

struct FailureLine {
  FailureFacts facts;
  std::string_view text;  // the line without the times, ranks, loggers and levels before it
};

/// Nothing if the line does not report a failure of a process or of the run. Thread-safe.
std::optional<FailureLine> failure_in(std::string_view line);

/// Whether the line has level ERROR or above. It need not be a failure: programs log errors and continue.
bool is_error_line(std::string_view line);

/// Reads a message that is known to be a failure's: "KeyError: 4711", or the last line of a traceback.
FailureFacts facts_of_message(std::string_view message);

}  // namespace unidle::logs
