/* The C ABI of the feature cache, for Python and others: entries by name, with memory-mapped arrays.
 *
 * Functions that fail return NULL or a negative number; unidle_data_error() of unidle_data.h then returns the reason,
 * per thread. Nothing throws, prints or aborts, except that a cache reports each kind of tolerated problem once on
 * stderr. Everything is thread-safe and usable on both sides of a fork. */
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

/* `options`: a JSON object with max_bytes (stored with the cache; default: the last given value), durable (whether
 * entries survive a power failure; true), create (true), read_only (false), quiet (no line on stderr; false). */
unidle_cache* unidle_cache_open(const char* path, const char* options);
/* Entries and claims may outlive the cache. */
void unidle_cache_close(unidle_cache* cache);

/* Kinds of keys. Add values, never change them. */
enum unidle_cache_key_kind {
  UNIDLE_CACHE_KEY = 0,   /* the 32 bytes themselves */
  UNIDLE_CACHE_NAME = 1,  /* a text in UTF-8, as for `unidle cache path --name` */
  UNIDLE_CACHE_BYTES = 2, /* a name of arbitrary bytes; never equals a text's entry */
};
/* Computes the 32 bytes of a name's key. 0, or negative: failed. */
int unidle_cache_key_of(int kind, const void* name, size_t size, uint8_t* key);

/* An entry that was found. The arrays are in [data, data + bytes), read-only, and valid until `entry` is released.
 * `layout` has a record for each array:
 *   u16 length of the name, u8 type (docs/cache-format.md), u8 axes, u32 zero, u64 offset from data, u64 bytes,
 *   u64 extents, the name. */
typedef struct {
  unidle_entry* entry;
  const void* data;
  uint64_t bytes;
  const char* layout;
  uint64_t layout_bytes;
} unidle_found;
/* 1: found; 0: missing; negative: failed. */
int unidle_cache_get(unidle_cache* cache, int kind, const void* name, size_t size, unidle_found* found);
/* The same for a walk over all entries; does not count as a use. */
int unidle_cache_peek(unidle_cache* cache, const uint8_t* key, unidle_found* found);
void unidle_entry_release(unidle_entry* entry);
/* 1: present; 0: missing; negative: failed. Does not read the entry. */
int unidle_cache_contains(unidle_cache* cache, const uint8_t* key);
/* 1: removed; 0: was missing. */
int unidle_cache_erase(unidle_cache* cache, const uint8_t* key);

/* The right to compute the entry of a key, exclusive across processes until it is released or this process ends. 1:
 * taken; 0: somebody else has it; negative: failed. Does not wait. */
int unidle_cache_claim(unidle_cache* cache, const uint8_t* key, unidle_claim** claim);
void unidle_claim_release(unidle_claim* claim);

typedef struct {
  const char* name; /* UTF-8 */
  const char* dtype;
  const void* data; /* in C order */
  const uint64_t* shape;
  uint64_t axes;
} unidle_cache_array;
/* Stores the entry, replacing an existing one. 1: stored; 0: not stored, reported once; negative: failed. */
int unidle_claim_put(unidle_cache* cache, unidle_claim* claim, const unidle_cache_array* arrays, size_t count);

typedef struct {
  const uint8_t* key; /* 32 bytes */
  const unidle_cache_array* arrays;
  size_t count;
} unidle_cache_new_entry;
/* Stores the first entries with one wait for the disk: at most about a hundred, up to one whose key somebody is
 * computing or that repeats a key. Returns how many it handled, or negative: failed. Does not wait for others: 0 means
 * that the first is being computed. Entries that cannot be stored are reported once. */
int64_t unidle_cache_put_many(unidle_cache* cache, const unidle_cache_new_entry* entries, size_t count);

/* Lists the keys of one of the 256 parts of a walk, 32 bytes each. Returns their number, or negative: failed. Release
 * `keys` with unidle_data_free(). */
int64_t unidle_cache_keys(unidle_cache* cache, int part, uint8_t** keys);

/* One JSON object: "entries", "bytes", "max_bytes", and "named": the number of entries that contain
 * their name. Release it with unidle_data_free(). */
char* unidle_cache_statistics(unidle_cache* cache);

#ifdef __cplusplus
}
#endif
#endif
