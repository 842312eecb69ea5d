/* The C ABI of the probe: how a training process tells unidle what it is doing.
 *
 * A process opens one ring, a memory-mapped file, and one writer puts events into it; the collector in `unidle run`
 * drains it. The writer never blocks, allocates or locks: when the ring is full the event is dropped and counted.
 * Rare events and events with text (settings, metrics, exceptions) go into a notes file beside the ring, one JSON
 * object per line. docs/probe-format.md documents the layout and its versions.
 *
 * No function throws or aborts. When UNIDLE_PROBE_DIR is unset every call is a cheap no-op. */
#ifndef UNIDLE_PROBE_H
#define UNIDLE_PROBE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Version of the files and of this header. Programs compiled with version 1 still run: their steps are recorded, but
 * not the parts of steps, which were separate events. */
#define UNIDLE_PROBE_VERSION 2

/* Values are stored in files: do not change, only add. 2 to 7, 13 to 15 were parts of steps in version 1. */
enum unidle_event_kind {
  UNIDLE_EVENT_STEP = 1, /* an unidle_step */
  /* A sample was produced, by any loader thread; a = sample id, b = bytes read. Several at once: value = their number,
   * a = the first, reserved = ns of the slowest. */
  UNIDLE_EVENT_SAMPLE = 8,
  UNIDLE_EVENT_STARTUP = 9,   /* from process start to the first step */
  UNIDLE_EVENT_VALIDATE = 10, /* one validation; a = samples */
  UNIDLE_EVENT_CHECKPOINT = 11,
  UNIDLE_EVENT_LOSS = 12,   /* value = training loss of step `step`, read back after it; a = samples seen before it */
  UNIDLE_EVENT_DEVICE = 16, /* the device's time for step `step`, known only later */
  /* One second of device `thread`: duration = busy time (kernels, copies, fills), a = kernels, b = bytes
   * copied, value = share of the kernels' time on matrix units, -1 without kernels. */
  UNIDLE_EVENT_KERNELS = 17
};

/* 64 bytes. Times are CLOCK_MONOTONIC nanoseconds. */
typedef struct unidle_event {
  uint64_t t_ns;
  uint64_t duration_ns;
  uint64_t step;
  uint64_t a;
  uint64_t b;
  double value;
  uint32_t kind;
  uint32_t thread;   /* 0 = the training thread, 1.. = loader threads */
  uint64_t reserved; /* 0, except for SAMPLE */
} unidle_event;

/* Bits of unidle_step::seen: which fields were measured. An unmeasured field is not 0 but unset. */
enum unidle_step_field {
  UNIDLE_STEP_INPUT = 1 << 0,
  UNIDLE_STEP_TRANSFER = 1 << 1,
  UNIDLE_STEP_FORWARD = 1 << 2,
  UNIDLE_STEP_BACKWARD = 1 << 3,
  UNIDLE_STEP_OPTIMIZER = 1 << 4,
  UNIDLE_STEP_SYNC = 1 << 5, /* sync_ns and syncs */
  UNIDLE_STEP_LOSS = 1 << 6  /* loss and samples_before */
};

/* One optimiser step, whole; 128 bytes. The times of its parts are exclusive, and sums over its micro-batches. */
typedef struct unidle_step {
  uint64_t t_ns;
  uint64_t duration_ns; /* from start to end of its work */
  uint64_t step;
  uint64_t samples;
  uint64_t samples_before; /* seen before this step */
  double loss;
  uint32_t kind; /* UNIDLE_EVENT_STEP, set by unidle_probe_step */
  uint32_t seen; /* bits of unidle_step_field */
  uint32_t micro_batches;
  uint32_t syncs;       /* number of waits in sync_ns */
  uint64_t input_ns;    /* wait for the next batch */
  uint64_t transfer_ns; /* host-to-device copies */
  uint64_t forward_ns;
  uint64_t backward_ns;
  uint64_t optimizer_ns;
  uint64_t sync_ns;  /* wait of the host for the device, e.g. to read the loss */
  uint64_t log_ns;   /* print, logging, progress bars; 0: none */
  uint64_t flush_ns; /* allocator flushes and garbage collection; 0: none */
} unidle_step;

typedef struct unidle_probe unidle_probe;

/* Opens this process's ring and notes file under $UNIDLE_PROBE_DIR. Returns NULL when that is unset or anything fails;
 * every other function accepts NULL and does nothing. `role` is "train" or "worker". */
unidle_probe* unidle_probe_open(const char* role);
void unidle_probe_close(unidle_probe* probe);

uint64_t unidle_probe_now_ns(void);
/* One writer thread per probe. Wait-free. A STEP event has samples in `a`, micro-batches in `b` and no parts. */
void unidle_probe_emit(unidle_probe* probe, const unidle_event* event);
void unidle_probe_step(unidle_probe* probe, const unidle_step* step);
/* Appends one line; `json` must be one JSON object with a "type". Makes system calls: do not call it at every step. */
void unidle_probe_note(unidle_probe* probe, const char* json);
uint64_t unidle_probe_dropped(const unidle_probe* probe);
/* For programs that write a ring's file themselves, where the processor may change the order of stores: a reader that
 * sees the word sees what this thread has written before. */
void unidle_probe_store(uint64_t* word, uint64_t value);

#ifdef __cplusplus
}
#endif
#endif
