/* The C ABI of the probe: how a training process tells unidle what it is doing.
 *
 * A process opens one ring, a memory-mapped file, and one writer puts fixed 64-byte events into it; the
 * collector in `unidle run` drains it. The writer never blocks, allocates or locks: when the ring is full the
 * event is dropped and counted. What is rare or has text in it (settings, metrics, exceptions) goes as one JSON
 * object a line into a notes file beside the ring. The layout is docs/probe-format.md; version it there.
 *
 * No function throws or aborts. When UNIDLE_PROBE_DIR is unset every call is a cheap no-op. */
#ifndef UNIDLE_PROBE_H
#define UNIDLE_PROBE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define UNIDLE_PROBE_VERSION 1

/* Values are stored in records: do not change, only add. */
enum unidle_event_kind {
  UNIDLE_EVENT_STEP = 1,     /* one optimiser step, begin to end of its work; a = samples, b = micro-batches */
  UNIDLE_EVENT_INPUT = 2,    /* waited for the next batch; a = batches ready when asked */
  UNIDLE_EVENT_TRANSFER = 3, /* host-to-device copy; a = bytes, b = bit 0 pinned, bit 1 blocking */
  UNIDLE_EVENT_FORWARD = 4,
  UNIDLE_EVENT_BACKWARD = 5,
  UNIDLE_EVENT_OPTIMIZER = 6,
  UNIDLE_EVENT_SYNC = 7, /* the host waited for the device, e.g. to read the loss back; value = waits, 0 is one */
  /* A sample was produced, by any loader thread; a = sample id, b = bytes read. Several at once: value = how many, a =
   * the first, reserved = ns of the slowest. */
  UNIDLE_EVENT_SAMPLE = 8,
  UNIDLE_EVENT_STARTUP = 9,   /* from process start to the first step */
  UNIDLE_EVENT_VALIDATE = 10, /* one validation; a = samples */
  UNIDLE_EVENT_CHECKPOINT = 11,
  UNIDLE_EVENT_LOSS = 12,         /* value = training loss; a = samples seen before this step */
  UNIDLE_EVENT_LOG = 13,          /* print, logging, progress bars inside the loop */
  UNIDLE_EVENT_FLUSH = 14,        /* the allocator was flushed or the garbage collector run inside the loop */
  UNIDLE_EVENT_LOADER_START = 15, /* loader workers were started or shut down; also part of the step's INPUT */
  UNIDLE_EVENT_DEVICE = 16,       /* the device's own time for step `step`, known only later */
  /* One second of device `thread`: duration = time in which kernels, copies or fills ran, a = kernels, b = bytes
   * copied, value = share of the kernels' time on matrix units, -1 without kernels. */
  UNIDLE_EVENT_KERNELS = 17
};

/* 64 bytes. Times are CLOCK_MONOTONIC nanoseconds. `step` ties the parts of a step to its STEP event,
 * which comes after them. */
typedef struct unidle_event {
  uint64_t t_ns;
  uint64_t duration_ns;
  uint64_t step;
  uint64_t a;
  uint64_t b;
  double value;
  uint32_t kind;
  uint32_t thread;   /* 0 = the training thread, 1.. = loader threads */
  uint64_t reserved; /* 0, but for SAMPLE */
} unidle_event;

typedef struct unidle_probe unidle_probe;

/* Opens this process's ring and notes file under $UNIDLE_PROBE_DIR. NULL when that is unset or anything fails;
 * every other function takes NULL and does nothing. `role` is "train" or "worker". */
unidle_probe* unidle_probe_open(const char* role);
void unidle_probe_close(unidle_probe* probe);

uint64_t unidle_probe_now_ns(void);
/* One writer thread per probe. Wait-free. */
void unidle_probe_emit(unidle_probe* probe, const unidle_event* event);
/* Appends one line; `json` must be one JSON object with a "type". May take a system call; not for every step. */
void unidle_probe_note(unidle_probe* probe, const char* json);
uint64_t unidle_probe_dropped(const unidle_probe* probe);

#ifdef __cplusplus
}
#endif
#endif
