/* The C ABI of the data pipeline, for Python and others: sources by name, loaders over them, and batches that the
 * caller takes as DLPack tensors without a copy.
 *
 * Functions that fail return NULL or a negative number; unidle_data_error() then returns the reason, per
 * thread, until the thread's next call. Nothing throws, prints or aborts. A source must outlive its loaders; tensors
 * may outlive both. A loader is not thread-safe; everything else is.
 *
 * After fork() the child lacks the loader's threads: every call with a loader of the parent fails there with
 * UNIDLE_DATA_FORKED, and closing it frees nothing. Opening a loader over a source that loader threads were reading at
 * the fork fails too, since they may have held its locks. */
#ifndef UNIDLE_DATA_H
#define UNIDLE_DATA_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Version of this header and unidle_cache.h, which one library implements. Incremented with every change, including
 * additions. The Python package loads only the library of its own version. */
#define UNIDLE_DATA_VERSION 5
int unidle_data_version(void);
/* Number of threads that can run in parallel: CPUs by affinity and cgroup quota, at least 1. */
int unidle_usable_cpus(void);

/* Codes of unidle_data_error(). Add codes, never change them. */
enum unidle_data_code {
  UNIDLE_DATA_OK = 0,
  UNIDLE_DATA_USAGE = 1,  /* an invalid value */
  UNIDLE_DATA_INPUT = 2,  /* a missing or malformed file */
  UNIDLE_DATA_IO = 3,     /* a system call failed */
  UNIDLE_DATA_MEMORY = 4, /* out of memory */
  UNIDLE_DATA_FORKED = 5, /* the loader belongs to another process */
  UNIDLE_DATA_INTERNAL = 6
};
/* The code of this thread's last failure; *text is one line, valid until the thread's next call. */
int unidle_data_error(const char** text);

/* DLPack 0.8, which every consumer accepts. */
typedef struct {
  int32_t device_type; /* 1: CPU */
  int32_t device_id;
} unidle_dl_device;
typedef struct {
  uint8_t code; /* 0 int, 1 unsigned, 2 float, 4 bfloat, 6 bool */
  uint8_t bits;
  uint16_t lanes;
} unidle_dl_type;
typedef struct {
  void* data;
  unidle_dl_device device;
  int32_t ndim;
  unidle_dl_type dtype;
  int64_t* shape;
  int64_t* strides; /* in values, not bytes */
  uint64_t byte_offset;
} unidle_dl_tensor;
typedef struct unidle_dl_managed {
  unidle_dl_tensor tensor;
  void* manager;
  void (*deleter)(struct unidle_dl_managed*); /* from any thread */
} unidle_dl_managed;

typedef struct unidle_source unidle_source;
typedef struct unidle_loader unidle_loader;
typedef struct unidle_order unidle_order;

/* Opens a source. `kind`: one of data/sources/, such as "images" or "table". `options`: a JSON object with the kind's
 * options. `arrays` are not copied and must stay valid as long as the source. */
unidle_source* unidle_source_open(const char* kind, const char* options, const unidle_dl_tensor* arrays, size_t count);
void unidle_source_close(unidle_source* source);
/* A selection of the source's items: item i is item items[i] of `source`, which must outlive it. */
unidle_source* unidle_source_subset(const unidle_source* source, const int64_t* items, size_t count);
/* One JSON object: "items", "samples_per_item", "fields": [{"name", "dtype", "shape", "ragged"}], and the
 * kind's additions. Release it with unidle_data_free(). */
char* unidle_source_describe(const unidle_source* source);
void unidle_data_free(char* text);

/* An order of epochs. `kind` "weights": `values` float64 [items], the weight of each. "groups": `values` int64 [items],
 * the group number of each, from 0; `options` {"batch", "shuffle", "drop_last"}. "runs": shuffles runs of consecutive
 * items, and the items of `window` runs at a time; `options` {"items", "run", "window"}, `values` NULL. */
unidle_order* unidle_order_open(const char* kind, const char* options, const unidle_dl_tensor* values);
void unidle_order_close(unidle_order* order);
/* Samples per epoch, across all ranks. */
int64_t unidle_order_samples(const unidle_order* order);

/* `options`: a JSON object with batch, workers (-1: as many as help, up to the usable CPUs; their number and the
 * prefetch depth adapt), prefetch, max_bytes (for prefetched batches; 0: a quarter of the memory), seed, shuffle,
 * start_sample, epoch_end ("span", "short", "drop"), rank, world, on_error ("fail"; "skip": leave out; "replace": use
 * the next item of the order; no batch is empty). */
unidle_loader* unidle_loader_open(const unidle_source* source, const char* options);
/* Returns memory for a field of a batch, such as page-locked memory, or NULL, in which case the library allocates it.
 * The memory stays the caller's, and is used until the loader is closed and the deleters of all its tensors have been
 * called. Called from within unidle_loader_open_ordered() and unidle_loader_next(), on their caller's thread. */
typedef void* (*unidle_lender)(size_t bytes);
/* The same with another order, unless `order` is NULL; it must outlive the loader. With `lender` not NULL, batches use
 * its memory, at most 2 GiB for the slots unless max_bytes is given. */
unidle_loader* unidle_loader_open_ordered(const unidle_source* source, const char* options, const unidle_order* order,
                                          unidle_lender lender);
/* Stops the loader's threads. */
void unidle_loader_close(unidle_loader* loader);
int64_t unidle_loader_batches_per_epoch(const unidle_loader* loader);
int64_t unidle_loader_batches_in_first_epoch(const unidle_loader* loader);
/* Number of threads. */
int unidle_loader_workers(const unidle_loader* loader);

/* Currently active threads, and the current limit of prefetched batches. */
typedef struct {
  int64_t workers;
  int64_t depth;
} unidle_loader_pace;
/* Call from the consumer thread. 1, or negative: failed. */
int unidle_loader_pace_now(const unidle_loader* loader, unidle_loader_pace* pace);

typedef struct {
  int64_t samples; /* of the order, including left-out ones, which the tensors lack */
  int64_t epoch;
  int64_t epoch_offset; /* samples that all ranks delivered before it in its epoch */
  int64_t waited_ns;
  int64_t skipped; /* unreadable items of all batches so far */
  int32_t ready;   /* whether it was complete when requested */
  int32_t reserved;
} unidle_batch_facts;
/* The next batch: fields[i] becomes the tensor of field i, whose deleter the caller must call. Waits at most
 * `limit_ms` (negative: forever; 0: only takes a batch that is ready, which needs threads). 1: delivered; 0: not yet;
 * negative: failed. */
int unidle_loader_next(unidle_loader* loader, int64_t limit_ms, unidle_dl_managed** fields, unidle_batch_facts* facts);
/* Skips the batch that unidle_loader_next() failed for, if samples of the batch caused the failure. 1: skipped, its
 * place is in *facts; 0: not skipped, it is still the next one; negative: failed. */
int unidle_loader_pass_over(unidle_loader* loader, unidle_batch_facts* facts);
/* Takes lent memory of a tensor back from the loader: it then belongs to the caller alone, before and after the
 * deleter, which must still be called. 1: taken back; 0: the memory is the library's own. */
int unidle_tensor_take_back(unidle_dl_managed* tensor);
/* The first extent of each sample of the last batch in a ragged field. *extents is valid until the next call of
 * unidle_loader_next(). Returns their number, 0 for other fields and before the first batch; negative: failed. */
int64_t unidle_loader_extents(const unidle_loader* loader, size_t field, const int64_t** extents);

/* The cost of the items in the batches so far; `cpu_ns` includes prefetched items. */
typedef struct {
  int64_t samples;
  int64_t busy_ns; /* of all threads that made them */
  int64_t slowest_ns;
  int64_t cpu_ns;
} unidle_loader_costs;
/* Call from the consumer thread. 1, or negative: failed. */
int unidle_loader_work(const unidle_loader* loader, unidle_loader_costs* costs);
/* Time of all its threads since they started, in ns: reading files, decoding pictures, transforming them (turning,
 * resizing, colours, normalising), and the rest (copying into the batch, including page faults of memory-mapped files).
 * 1, or negative: failed. */
int unidle_loader_stages(const unidle_loader* loader, int64_t ns[4]);

#ifdef __cplusplus
}
#endif
#endif
