"""Writes events into the memory-mapped ring (docs/probe-format.md), for one thread.

Python writes directly into the mapping: a ctypes call into libunidle_probe costs twice as much. Plain stores
suffice only where the processor keeps their order; on machines other than x86-64 the library stores the words
that make others visible.
"""

import ctypes
import os
import resource
import struct
import time

from _unidle_shim.host.notes import process_start

_HEADER_BYTES = 4096
_EVENT = struct.Struct("=QQQQQdIIQ")
_pack = _EVENT.pack_into
_SLOT_BYTES = 128
_MAGIC = 0x31474E52444E5500
_VERSION = 2
_TRAIN_CAPACITY = 16384
_FILE_LOCK = 2  # in the header: flock(2)
_STATE_AT, _HEAD_AT, _CLOSED = 56, 64, 2
_LOCK_EX, _LOCK_NB = 2, 4
_WORKER_CAPACITY = 512  # at most 50 events/s: there may be hundreds of workers, and each file needs space


def open_ring(role):
    """Opens a ring for this process; None without space or permission."""
    try:
        if os.uname().machine == "x86_64":
            return Ring(role)
        return OrderedRing(role)
    except (OSError, ValueError, AttributeError):
        return None


class Writer:
    """Writes events into `view`, at room(), followed by publish()."""

    def emit(self, kind, t_ns, duration_ns, step=0, a=0, b=0, value=0.0, reserved=0):
        place = self.room()
        if place is None:
            return
        try:
            _pack(self.view, place, t_ns, duration_ns, step, a, b, value, kind, 0, reserved)
        except struct.error:
            values = (t_ns, duration_ns, step, a, b, value, kind, 0, reserved)
            _pack(self.view, place, *map(without_negative, values))
        self.publish()


class Ring(Writer):
    def __init__(self, role):
        self.capacity = _TRAIN_CAPACITY if role == "train" else _WORKER_CAPACITY
        size = _HEADER_BYTES + self.capacity * _SLOT_BYTES
        handle = create("ring", size)
        try:
            # No descriptor is kept: a program that closes all it finds would close it, or we might close one
            # of the program's. The mapping keeps the file open, and with it the lock, which shows the reader
            # that the ring may still be written.
            locked = _FILE_LOCK if _libc().flock(handle, _LOCK_EX | _LOCK_NB) == 0 else 0
            memory = map_file(handle, size)
        finally:
            os.close(handle)
        self._address = memory
        self._memory = (ctypes.c_char * size).from_address(memory)
        view = memoryview(self._memory).cast("B")
        self.view = view
        self._words = view[:_HEADER_BYTES].cast("Q")
        self._head_word = view[_HEAD_AT : _HEAD_AT + 8].cast("Q")
        self._tail_word = view[128:136].cast("Q")
        self._dropped_word = view[192:200].cast("Q")
        self._head, self._tail, self._mask = 0, 0, self.capacity - 1
        struct.pack_into(
            "@IIQIIQ16sI",
            view,
            8,
            _VERSION,
            _SLOT_BYTES,
            self.capacity,
            os.getpid(),
            locked,
            time.monotonic_ns(),
            role.encode(),
            1,
        )
        view[200:208].cast("Q")[0] = process_start()
        self.store_last(0, _MAGIC)  # a reader that sees it sees a complete header

    def room(self):
        """The offset of the next event. None if the ring is full; the event then counts as dropped."""
        head = self._head
        if head - self._tail > self._mask:
            self._tail = self._tail_word[0]
            if head - self._tail > self._mask:
                self._dropped_word[0] += 1
                return None
        return _HEADER_BYTES + ((head & self._mask) << 7)

    def publish(self):
        """Makes the complete event visible to the reader."""
        self._head += 1
        self._head_word[0] = self._head

    def store_last(self, offset, value):
        """Stores a word of the header; what was written before is visible to whoever sees it."""
        self._words[offset // 8] = value

    def close(self):
        self.store_last(_STATE_AT, _CLOSED)


def without_negative(value):
    """Replaces times that are negative because a clock went back."""
    return max(0, value) if isinstance(value, int) else value


class OrderedRing(Ring):
    """The same where the processor may change the order of stores."""

    def __init__(self, role):
        # PyDLL: a call that takes nanoseconds keeps Python's lock.
        library = ctypes.PyDLL(os.environ.get("UNIDLE_PROBE_LIBRARY", "libunidle_probe.so"))
        self._store = library.unidle_probe_store
        self._store.restype = None
        self._store.argtypes = [ctypes.c_void_p, ctypes.c_uint64]
        super().__init__(role)

    def publish(self):
        self._head += 1
        self._store(self._address + _HEAD_AT, self._head)

    def store_last(self, offset, value):
        self._store(self._address + offset, value)


def create(kind, size):
    """Creates a file of this process in the probe folder, with its space allocated; returns its
    descriptor."""
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
    if limit != resource.RLIM_INFINITY and limit < size:
        raise OSError("files may not grow that far")
    folder = os.environ["UNIDLE_PROBE_DIR"]
    for number in range(256):
        name = "%d.%s" % (os.getpid(), kind) if number == 0 else "%d.%d.%s" % (os.getpid(), number, kind)
        path = os.path.join(folder, name)
        try:
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except FileExistsError:
            continue
        try:
            # Allocated now: on a full disk, a later write into the mapping would be a SIGBUS in the program.
            os.posix_fallocate(handle, 0, size)
        except OSError:
            os.close(handle)
            os.unlink(path)
            raise
        return handle
    raise OSError("too many rings")


def _libc():
    return ctypes.CDLL(None, use_errno=True)


def map_file(handle, size):
    """The address at which the file stays mapped until the process ends."""
    libc = _libc()
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [
        ctypes.c_void_p,
        ctypes.c_size_t,
        ctypes.c_int,
        ctypes.c_int,
        ctypes.c_int,
        ctypes.c_long,
    ]
    address = libc.mmap(None, size, 3, 1, handle, 0)  # PROT_READ | PROT_WRITE, MAP_SHARED
    if address is None or address == ctypes.c_void_p(-1).value:
        raise OSError(ctypes.get_errno(), "mmap")
    return address
