// What unidle-train sets up for its whole process.
#pragma once

#include <atomic>

namespace unidle::engine {

/// Keeps what a step frees for the next step: tensors of some megabytes would otherwise go back to the kernel and be
/// faulted in, page by page, in every step.
void keep_freed_memory();

/// Threads that wait for others spin for some microseconds, then sleep. OpenMP reads its environment while the program
/// is loaded, so the program is loaded again, with the same `argv`; where that fails all stays as it was. Call it
/// before anything else: it does not return where it loads the program.
void let_waiting_threads_spin_briefly(char** argv);

/// From here on torch's own words below `level` ("ERROR", "FATAL") are left out, unless TORCH_CPP_LOG_LEVEL asks for
/// some. For processes that look for each other: what sockets that are tried again lead to is an error of ours.
void quiet_torch(const char* level);

/// From here on Ctrl-C and SIGTERM (what Slurm and torchrun send) ask the run to end after its step, with a
/// checkpoint. A second one, two seconds later or more, ends the process.
void stop_at_signals();
/// True once one has come.
const std::atomic<bool>& stop_asked();
/// The signal that came; SIGINT where none did, since another process of the run was asked.
int stopping_signal();

}  // namespace unidle::engine
