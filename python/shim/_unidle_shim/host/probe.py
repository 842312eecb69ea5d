"""Writes events into the memory-mapped ring (docs/probe-format.md), for one thread.

Written in Python straight into the mapping: a ctypes call into libunidle_probe costs twice as much. Plain
stores are enough only where the processor keeps their order, so other machines than x86-64 go through the
library.
"""

import ctypes
import os
import resource
import struct
import time

from _unidle_shim.host.notes import process_start

_HEADER_BYTES = 4096
_EVENT = struct.Struct("@QQQQQdIIQ")
_MAGIC = 0x31474E52444E5500
_FIELDS = {  # what emit_all is given of an event, in this order; the rest is 0
    "p": "QQQ24xI12x",  # t_ns, duration_ns, step, kind
    "e": "QQQQQdI12x",  # t_ns, duration_ns, step, a, b, value, kind
    "l": "Q8xQQ8xdI12x",  # t_ns, step, a, value, kind
    "S": "QQQQQ8xI12x",  # t_ns, duration_ns, step, a, b, kind
}
_TRAIN_CAPACITY = 16384
_FILE_LOCK = 2  # in the header: flock(2)
_LOCK_EX, _LOCK_NB = 2, 4
_WORKER_CAPACITY = 512  # at most 50 events a second: workers come by the hundred, and each file takes room


def open_ring(role):
    """A ring of this process; None where there is no room or no right to make one."""
    try:
        if os.uname().machine == "x86_64":
            return Ring(role)
        return LibraryRing(role)
    except (OSError, ValueError, AttributeError):
        return None


class Ring:
    def __init__(self, role):
        self.capacity = _TRAIN_CAPACITY if role == "train" else _WORKER_CAPACITY
        size = _HEADER_BYTES + self.capacity * _EVENT.size
        handle = create("ring", size)
        try:
            # No descriptor is kept: a program that closes all it finds would close it, or we one of the
            # program's. The mapping keeps the file open, and with it the lock, which tells the reader that
            # somebody may still write.
            locked = _FILE_LOCK if _libc().flock(handle, _LOCK_EX | _LOCK_NB) == 0 else 0
            memory = map_file(handle, size)
        finally:
            os.close(handle)
        self._memory = (ctypes.c_char * size).from_address(memory)
        view = memoryview(self._memory).cast("B")
        self._pack, self._view = _EVENT.pack_into, view
        self._head_word = view[64:72].cast("Q")
        self._tail_word = view[128:136].cast("Q")
        self._dropped_word = view[192:200].cast("Q")
        self._state_word = view[56:60].cast("I")
        self._head, self._tail, self._mask = 0, 0, self.capacity - 1
        struct.pack_into(
            "@IIQIIQ16sI",
            view,
            8,
            1,
            64,
            self.capacity,
            os.getpid(),
            locked,
            time.monotonic_ns(),
            role.encode(),
            1,
        )
        view[200:208].cast("Q")[0] = process_start()
        view[0:8].cast("Q")[0] = _MAGIC  # last: whoever sees it sees a whole header

    def emit(self, kind, t_ns, duration_ns, step=0, a=0, b=0, value=0.0, reserved=0):
        head = self._head
        if head - self._tail > self._mask:
            self._tail = self._tail_word[0]
            if head - self._tail > self._mask:
                self._dropped_word[0] += 1
                return
        place = _HEADER_BYTES + ((head & self._mask) << 6)
        try:
            self._pack(self._view, place, t_ns, duration_ns, step, a, b, value, kind, 0, reserved)
        except struct.error:
            self._pack(
                self._view, place, *_possible((t_ns, duration_ns, step, a, b, value, kind, 0, reserved))
            )
        self._head = head + 1
        self._head_word[0] = head + 1

    def emit_all(self, layout, values):
        """Several events at once, all or none of them: `layout` has a letter of _FIELDS for each."""
        packer = _packers.get(layout) or packer_of(layout)
        head, count = self._head, len(layout)
        if head + count - self._tail > self.capacity:
            self._tail = self._tail_word[0]
            if head + count - self._tail > self.capacity:
                self._dropped_word[0] += count
                return
        place = head & self._mask
        if place + count <= self.capacity:
            try:
                packer.pack_into(self._view, _HEADER_BYTES + (place << 6), *values)
            except struct.error:
                packer.pack_into(self._view, _HEADER_BYTES + (place << 6), *_possible(values))
        else:
            content, first = packer.pack(*_possible(values)), (self.capacity - place) << 6
            self._view[_HEADER_BYTES + (place << 6) :] = content[:first]
            self._view[_HEADER_BYTES : _HEADER_BYTES + len(content) - first] = content[first:]
        self._head = head = head + count
        self._head_word[0] = head

    def close(self):
        self._state_word[0] = 2


def _possible(values):
    """Without times that are negative because a clock went back."""
    return [max(0, value) if isinstance(value, int) else value for value in values]


_packers = {}


def packer_of(layout):
    packer = _packers[layout] = struct.Struct("=" + "".join(_FIELDS[letter] for letter in layout))
    return packer


class _Event(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("t_ns", "duration_ns", "step", "a", "b")] + [
        ("value", ctypes.c_double),
        ("kind", ctypes.c_uint32),
        ("thread", ctypes.c_uint32),
        ("reserved", ctypes.c_uint64),
    ]


class LibraryRing:
    def __init__(self, role):
        library = ctypes.CDLL(os.environ.get("UNIDLE_PROBE_LIBRARY", "libunidle_probe.so"))
        library.unidle_probe_open.restype = ctypes.c_void_p
        library.unidle_probe_open.argtypes = [ctypes.c_char_p]
        library.unidle_probe_emit.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
        library.unidle_probe_close.argtypes = [ctypes.c_void_p]
        self._library, self._probe = library, library.unidle_probe_open(role.encode())
        if not self._probe:
            raise OSError("no ring")

    def emit(self, kind, t_ns, duration_ns, step=0, a=0, b=0, value=0.0, reserved=0):
        event = _Event(t_ns, duration_ns, step, a, b, value, kind, 0, reserved)
        self._library.unidle_probe_emit(self._probe, ctypes.addressof(event))

    def emit_all(self, layout, values):
        content = (_packers.get(layout) or packer_of(layout)).pack(*_possible(values))
        for index in range(len(layout)):
            event = _Event.from_buffer_copy(content, 64 * index)
            self._library.unidle_probe_emit(self._probe, ctypes.addressof(event))

    def close(self):
        self._library.unidle_probe_close(self._probe)
        self._probe = None


def create(kind, size):
    """A file of this process in the probe folder, with room for all of it; its descriptor."""
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
            # Reserved now: on a full disk a later write into the mapping would be a SIGBUS in the program.
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
    """The address at which the file is in memory until the process ends."""
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
