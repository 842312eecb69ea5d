#include "unidle/record/testing/refusing_vfs.h"

#include <sqlite3.h>

#include <cstring>

namespace unidle::record::testing {

namespace {

constexpr const char* kName = "unidle-refusing";

struct Counter {
  int calls = 0;
  int refused_from = 0;
  bool refuses() { return ++calls >= refused_from; }
};
Counter g_counter;

/// SQLite's handle of an open file, followed by the handle of the real file.
struct File {
  sqlite3_file base;
  sqlite3_file* real() { return reinterpret_cast<sqlite3_file*>(this + 1); }
};

sqlite3_file* real(sqlite3_file* file) { return reinterpret_cast<File*>(file)->real(); }
const sqlite3_io_methods& methods(sqlite3_file* file) { return *real(file)->pMethods; }

int write(sqlite3_file* file, const void* bytes, int count, sqlite3_int64 offset) {
  if (g_counter.refuses()) {
    methods(file).xWrite(real(file), bytes, count / 2, offset);
    return SQLITE_FULL;
  }
  return methods(file).xWrite(real(file), bytes, count, offset);
}

const sqlite3_io_methods kMethods = {
    .iVersion = 3,
    .xClose = [](sqlite3_file* f) { return real(f)->pMethods == nullptr ? SQLITE_OK : methods(f).xClose(real(f)); },
    .xRead = [](sqlite3_file* f, void* bytes, int count,
                sqlite3_int64 offset) { return methods(f).xRead(real(f), bytes, count, offset); },
    .xWrite = write,
    .xTruncate =
        [](sqlite3_file* f, sqlite3_int64 size) {
          return g_counter.refuses() ? SQLITE_IOERR_TRUNCATE : methods(f).xTruncate(real(f), size);
        },
    .xSync = [](sqlite3_file* f,
                int flags) { return g_counter.refuses() ? SQLITE_IOERR_FSYNC : methods(f).xSync(real(f), flags); },
    .xFileSize = [](sqlite3_file* f, sqlite3_int64* size) { return methods(f).xFileSize(real(f), size); },
    .xLock = [](sqlite3_file* f, int level) { return methods(f).xLock(real(f), level); },
    .xUnlock = [](sqlite3_file* f, int level) { return methods(f).xUnlock(real(f), level); },
    .xCheckReservedLock = [](sqlite3_file* f, int* out) { return methods(f).xCheckReservedLock(real(f), out); },
    .xFileControl = [](sqlite3_file* f, int op, void* arg) { return methods(f).xFileControl(real(f), op, arg); },
    .xSectorSize = [](sqlite3_file* f) { return methods(f).xSectorSize(real(f)); },
    .xDeviceCharacteristics = [](sqlite3_file* f) { return methods(f).xDeviceCharacteristics(real(f)); },
    .xShmMap = [](sqlite3_file* f, int page, int size, int extend,
                  void volatile** out) { return methods(f).xShmMap(real(f), page, size, extend, out); },
    .xShmLock = [](sqlite3_file* f, int offset, int n,
                   int flags) { return methods(f).xShmLock(real(f), offset, n, flags); },
    .xShmBarrier = [](sqlite3_file* f) { methods(f).xShmBarrier(real(f)); },
    .xShmUnmap = [](sqlite3_file* f, int remove) { return methods(f).xShmUnmap(real(f), remove); },
    .xFetch = [](sqlite3_file* f, sqlite3_int64 offset, int count,
                 void** out) { return methods(f).xFetch(real(f), offset, count, out); },
    .xUnfetch = [](sqlite3_file* f, sqlite3_int64 offset,
                   void* page) { return methods(f).xUnfetch(real(f), offset, page); },
};

sqlite3_vfs* system_vfs() { return static_cast<sqlite3_vfs*>(sqlite3_vfs_find(kName)->pAppData); }

int open(sqlite3_vfs* /*vfs*/, const char* name, sqlite3_file* file, int flags, int* out) {
  const int result = system_vfs()->xOpen(system_vfs(), name, real(file), flags, out);
  file->pMethods = result == SQLITE_OK ? &kMethods : nullptr;
  return result;
}

}  // namespace

RefusingVfs::RefusingVfs(int n) {
  static sqlite3_vfs vfs;
  sqlite3_vfs* const system = sqlite3_vfs_find(nullptr);
  vfs = *system;
  vfs.zName = kName;
  vfs.szOsFile = static_cast<int>(sizeof(File)) + system->szOsFile;
  vfs.pAppData = system;
  vfs.pNext = nullptr;
  vfs.xOpen = open;
  g_counter = {0, n};
  sqlite3_vfs_register(&vfs, 1);
}

RefusingVfs::~RefusingVfs() {
  sqlite3_vfs* const ours = sqlite3_vfs_find(kName);
  sqlite3_vfs_unregister(ours);
  sqlite3_vfs_register(static_cast<sqlite3_vfs*>(ours->pAppData), 1);
}

bool RefusingVfs::refused() const { return g_counter.calls >= g_counter.refused_from; }

}  // namespace unidle::record::testing
