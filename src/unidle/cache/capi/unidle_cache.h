/* The C ABI of the feature cache, for Python and others: entries by name, whose arrays are read where they lie mapped.
 *
 * Functions that fail return NULL or a negative number; unidle_data_error() of unidle_data.h then tells why, for the
 * calling thread. Nothing throws, prints or aborts, but for the one line on stderr that a cache tells of each kind of
 * trouble it goes on in spite of. All of it is thread-safe, and both sides of a fork may go on. */
#ifndef UNIDLE_CACHE_H
#define UNIDLE_CACHE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct unidle_cache unidle_cache;
typedef struct unidle_claim unidle_claim;
typedef struct unidle_entry unidle_entry;

/* `options`: a JSON object with max_bytes (kept with the cache; left out, what was given last holds), durable (whether
 * what was put outlives a power failure; true), create (true), read_only (false), quiet (no line on stderr; false). */
unidle_cache* unidle_cache_open(const char* path, const char* options);
/* Entries and claims outlive it. */
void unidle_cache_close(unidle_cache* cache);

/* Of a key. Do not change, only add. */
enum unidle_cache_key_kind {
  UNIDLE_CACHE_KEY = 0,   /* the 32 bytes themselves */
  UNIDLE_CACHE_NAME = 1,  /* a text in UTF-8, as `unidle cache path --name` takes it */
  UNIDLE_CACHE_BYTES = 2, /* a name of any bytes; never the same entry as a text */
};
/* The 32 bytes of the key of a name. 0, or negative. */
int unidle_cache_key_of(int kind, const void* name, size_t size, uint8_t* key);

/* An entry that was found. The arrays lie within [data, data + bytes), may only be read, and stay until `entry` is
 * released. `layout` says where, a record for each array:
 *   u16 length of the name, u8 type (docs/cache-format.md), u8 axes, u32 zero, u64 offset from data, u64 bytes,
 *   u64 extents, the name. */
typedef struct {
  unidle_entry* entry;
  const void* data;
  uint64_t bytes;
  const char* layout;
  uint64_t layout_bytes;
} unidle_found;
/* 1: it is there; 0: it is not; negative: failed. */
int unidle_cache_get(unidle_cache* cache, int kind, const void* name, size_t size, unidle_found* found);
/* The same for a walk over all entries, of which none counts as used. */
int unidle_cache_peek(unidle_cache* cache, const uint8_t* key, unidle_found* found);
void unidle_entry_release(unidle_entry* entry);
/* 1, 0 or negative. Looks at no byte of the entry. */
int unidle_cache_contains(unidle_cache* cache, const uint8_t* key);
/* 1: it was there; 0: there was none. */
int unidle_cache_erase(unidle_cache* cache, const uint8_t* key);

/* The right to compute the entry of a key, which nobody else has, in whatever process, until it is released or this
 * process ends. 1: taken; 0: somebody else has it; negative: failed. Does not wait. */
int unidle_cache_claim(unidle_cache* cache, const uint8_t* key, unidle_claim** claim);
void unidle_claim_release(unidle_claim* claim);

typedef struct {
  const char* name; /* UTF-8 */
  const char* dtype;
  const void* data; /* in C order */
  const uint64_t* shape;
  uint64_t axes;
} unidle_cache_array;
/* Stores the entry in place of what was there. 1: stored; 0: not stored, which the cache tells once; negative: failed.
 */
int unidle_claim_put(unidle_cache* cache, unidle_claim* claim, const unidle_cache_array* arrays, size_t count);

typedef struct {
  const uint8_t* key; /* 32 bytes */
  const unidle_cache_array* arrays;
  size_t count;
} unidle_cache_new_entry;
/* Stores the first of the entries with one wait for the disk, some hundred at most, up to one whose key somebody is
 * computing (of a key that comes twice: up to the second). Returns how many it got through, or negative: failed. Does
 * not wait for who computes: 0 says that the first is being computed. What could not be stored the cache tells once. */
int64_t unidle_cache_put_many(unidle_cache* cache, const unidle_cache_new_entry* entries, size_t count);

/* The keys of one of the 256 parts of a walk over all entries, 32 bytes each; their number, or negative. Release `keys`
 * with unidle_data_free(). */
int64_t unidle_cache_keys(unidle_cache* cache, int part, uint8_t** keys);

/* One JSON object: "entries", "bytes", "max_bytes", and "named": entries whose first array is the name that they were
 * given. Release it with unidle_data_free(). */
char* unidle_cache_statistics(unidle_cache* cache);

#ifdef __cplusplus
}
#endif
#endif
