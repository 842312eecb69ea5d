/* The C ABI of the data pipeline, for Python and others: sources by name, loaders over them, and batches whose memory
 * the caller takes as DLPack tensors, without a copy.
 *
 * Functions that fail return NULL or a negative number; unidle_data_error() then tells why, for the calling thread,
 * until its next call. Nothing throws, prints or aborts. A source must outlive its loaders; tensors may outlive both. A
 * loader is for one thread at a time; everything else is thread-safe.
 *
 * After fork() the child has none of the loader's threads: every call with a loader of the parent fails there with
 * UNIDLE_DATA_FORKED, and closing it gives nothing back. So does opening a loader over a source that threads of a
 * loader read when the process was forked, since they may have held its locks. */
#ifndef UNIDLE_DATA_H
#define UNIDLE_DATA_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Of this header and of unidle_cache.h, which one library has: one more with every change of them, additions too. The
 * Python package takes the library of its own version and no other. */
#define UNIDLE_DATA_VERSION 5
int unidle_data_version(void);
/* Threads that may work side by side: CPUs of this process by affinity and by the cgroup's quota, at least 1. */
int unidle_usable_cpus(void);

/* Of unidle_data_error(). Do not change, only add. */
enum unidle_data_code {
  UNIDLE_DATA_OK = 0,
  UNIDLE_DATA_USAGE = 1,  /* a value that makes no sense */
  UNIDLE_DATA_INPUT = 2,  /* a file that is not what it should be */
  UNIDLE_DATA_IO = 3,     /* the system refused */
  UNIDLE_DATA_MEMORY = 4, /* memory ran out */
  UNIDLE_DATA_FORKED = 5, /* the loader is of another process */
  UNIDLE_DATA_INTERNAL = 6
};
/* The code of this thread's last failure; *text is one line, valid until the thread's next call. */
int unidle_data_error(const char** text);

/* As DLPack's header has it (version 0.8, which every consumer takes). */
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

/* `kind`: one of data/sources/, such as "images" or "table". `options`: a JSON object with
 * what the kind knows. `arrays` are not copied: they must stay as long as the source. */
unidle_source* unidle_source_open(const char* kind, const char* options, const unidle_dl_tensor* arrays, size_t count);
void unidle_source_close(unidle_source* source);
/* Its items in another order or number: item i of the new source is item items[i] of this one, which must outlive it.
 */
unidle_source* unidle_source_subset(const unidle_source* source, const int64_t* items, size_t count);
/* One JSON object: "items", "samples_per_item", "fields": [{"name", "dtype", "shape", "ragged"}], and what the kind
 * adds. Release it with unidle_data_free(). */
char* unidle_source_describe(const unidle_source* source);
void unidle_data_free(char* text);

/* An order of epochs. `kind` "weights": `values` float64 [items], how often each is drawn. "groups": `values` int64
 * [items], the number of each one's group from 0; `options` {"batch", "shuffle", "drop_last"}. "runs": runs of items
 * that follow each other are shuffled, and the items of `window` of them at a time; `options` {"items", "run",
 * "window"}, `values` NULL. */
unidle_order* unidle_order_open(const char* kind, const char* options, const unidle_dl_tensor* values);
void unidle_order_close(unidle_order* order);
/* Samples an epoch, of all ranks. */
int64_t unidle_order_samples(const unidle_order* order);

/* `options`: a JSON object with batch, workers (-1: as many as help, up to the CPUs that there are to use; they come
 * and go, and batches ahead with them), prefetch, max_bytes (of the batches made ahead; 0: a quarter of the memory),
 * seed, shuffle, start_sample, epoch_end ("span", "short", "drop"), rank, world, on_error ("fail", "skip": left out,
 * "replace": by the next one of the order; no batch is empty). */
unidle_loader* unidle_loader_open(const unidle_source* source, const char* options);
/* Memory for a field of a batch, page-locked for instance; NULL where there is none, and memory of the library's own is
 * taken. It stays the caller's, and is used until the loader is closed and the deleters of all of its tensors have been
 * called. Called within unidle_loader_open_ordered() and unidle_loader_next(), by the thread that calls these. */
typedef void* (*unidle_lender)(size_t bytes);
/* The same in another order than each item once, where `order` is not NULL; it must outlive the loader. With `lender`
 * not NULL, batches lie in its memory; of that, slots take 2 GiB at most unless max_bytes is given. */
unidle_loader* unidle_loader_open_ordered(const unidle_source* source, const char* options, const unidle_order* order,
                                          unidle_lender lender);
/* Stops its threads. */
void unidle_loader_close(unidle_loader* loader);
int64_t unidle_loader_batches_per_epoch(const unidle_loader* loader);
int64_t unidle_loader_batches_in_first_epoch(const unidle_loader* loader);
/* Threads that there are. */
int unidle_loader_workers(const unidle_loader* loader);

/* Threads at work now, and batches that are made ahead now, at most. */
typedef struct {
  int64_t workers;
  int64_t depth;
} unidle_loader_pace;
/* By the thread that asks for batches. 1, or negative: failed. */
int unidle_loader_pace_now(const unidle_loader* loader, unidle_loader_pace* pace);

typedef struct {
  int64_t samples; /* of the order, those that were left out included; the tensors have those that are there */
  int64_t epoch;
  int64_t epoch_offset; /* samples that all ranks delivered before it in its epoch */
  int64_t waited_ns;
  int64_t skipped; /* items of all batches so far that could not be read */
  int32_t ready;   /* whether it was there when asked for */
  int32_t reserved;
} unidle_batch_facts;
/* The next batch: fields[i] becomes the tensor of field i, whose deleter the caller calls. Waits `limit_ms` at most
 * (negative: for ever; 0: takes it only where it lies ready, which it never does without threads). 1: it is there; 0:
 * not yet; negative: failed. */
int unidle_loader_next(unidle_loader* loader, int64_t limit_ms, unidle_dl_managed** fields, unidle_batch_facts* facts);
/* Skips the batch that unidle_loader_next() failed for, if samples of the batch caused the failure. 1: skipped, its
 * place is in *facts; 0: not skipped, it is still the next one; negative: failed. */
int unidle_loader_pass_over(unidle_loader* loader, unidle_batch_facts* facts);
/* Takes the memory of such a tensor back from the loader, where it was lent: it is the caller's alone then, before and
 * after the deleter, which is called as ever. 1; 0: the memory is the library's own. */
int unidle_tensor_take_back(unidle_dl_managed* tensor);
/* How the last batch was padded: the first extent of each of its samples in a field that is ragged. *extents is valid
 * until the next call of unidle_loader_next(). How many there are: 0 for other fields and before the first batch;
 * negative: failed. */
int64_t unidle_loader_extents(const unidle_loader* loader, size_t field, const int64_t** extents);

/* What the items of the batches so far have cost; `cpu_ns` also has what the threads made ahead. */
typedef struct {
  int64_t samples;
  int64_t busy_ns; /* of all threads that made them */
  int64_t slowest_ns;
  int64_t cpu_ns;
} unidle_loader_costs;
/* By the thread that asks for batches. 1, or negative: failed. */
int unidle_loader_work(const unidle_loader* loader, unidle_loader_costs* costs);
/* Of all its threads since they began, ns: reading files, decoding pictures, changing them (turned, resized, colours,
 * normalised), all else (copying into the batch, with what memory-mapped files bring in). 1, or negative: failed. */
int unidle_loader_stages(const unidle_loader* loader, int64_t ns[4]);

#ifdef __cplusplus
}
#endif
#endif
