"""The memory that this process may still allocate, according to the machine and its cgroup."""


def available_bytes():
    """The free memory of the machine, or of the process's cgroup if that is less."""
    found = [_meminfo()] + [limit - used for limit, used in _cgroups()]
    return max(0, min(found))


def _meminfo():
    with open("/proc/meminfo") as file:
        for line in file:
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return 0


def _cgroups():
    for limit, used in (
        ("memory.max", "memory.current"),
        ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"),
    ):
        try:
            with open("/sys/fs/cgroup/" + limit) as file:
                most = file.read().strip()
            with open("/sys/fs/cgroup/" + used) as file:
                yield int(most), int(file.read())
        except (OSError, ValueError):
            continue  # another cgroup version, or "max"
