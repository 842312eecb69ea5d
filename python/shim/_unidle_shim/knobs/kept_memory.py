"""Keeps memory that is freed in the process (memory.keep_freed), as the environment variables
MALLOC_MMAP_MAX_=0 and MALLOC_TRIM_THRESHOLD_=-1 of glibc do.

glibc maps each large block on its own and unmaps it when it is freed, and it returns the free end of its
heap. The next block of that size is zeroed again by the kernel, page by page."""

import ctypes
import os
import re

from _unidle_shim.host.exception_origin import pass_on

KNOB = "memory.keep_freed"
_TRIM_THRESHOLD, _MMAP_MAX = -1, -4  # options of mallopt(3)
_NEVER = -1
_VARIABLE = "MALLOC_MMAP_MAX_"
_TUNABLE = re.compile(r"(?:^|:)glibc\.malloc\.mmap_max=0(?::|$)")


class KeptMemory:
    def __init__(self):
        self.kept = False

    def keep(self):
        """Returns whether this process keeps freed memory from now on."""
        try:
            mallopt = ctypes.CDLL(None).mallopt
            self.kept = bool(mallopt(_MMAP_MAX, 0) and mallopt(_TRIM_THRESHOLD, _NEVER))
        except (OSError, AttributeError) as failure:
            pass_on(failure)  # another C library
        return self.kept

    def in_effect(self):
        tunables = os.environ.get("GLIBC_TUNABLES", "")
        return self.kept or os.environ.get(_VARIABLE) == "0" or bool(_TUNABLE.search(tunables))
