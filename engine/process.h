// Settings of the whole process.
#pragma once

#include <atomic>

namespace unidle::engine {

/// Keeps memory freed by a step for the next one: tensors of some megabytes would otherwise be returned to the kernel
/// and faulted in again, page by page, in every step.
void keep_freed_memory();

/// Makes waiting threads spin for some microseconds, then sleep. OpenMP reads its environment at load time, so this
/// executes the program again with the same `argv`; on failure nothing changes. Call it first: it does not return when
/// it succeeds.
void let_waiting_threads_spin_briefly(char** argv);

/// From now on drops torch's messages below `level` ("ERROR", "FATAL"), unless TORCH_CPP_LOG_LEVEL requests them. For
/// processes that connect to each other: a failure after retries is reported as our own error.
void quiet_torch(const char* level);

/// From now on Ctrl-C and SIGTERM (sent by Slurm and torchrun) end the run after the current step, with a checkpoint. A
/// second signal, two seconds later or more, ends the process.
void stop_at_signals();
/// True once a signal has arrived.
const std::atomic<bool>& stop_requested();
/// The signal that arrived; SIGINT when none did, since another process of the run got it.
int stopping_signal();

}  // namespace unidle::engine
