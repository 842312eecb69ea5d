"""The cost of the `unidle monitor` process: its CPU time over a fixed time, at ten readings per second,
without a GPU and with one and eight GPUs of the fake NVML library. A short run is subtracted from a long
one, so that start-up does not count.

"""

import argparse
import json
import os
import platform
import resource
import statistics
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(os.environ.get("UNIDLE_BIN", ROOT / "build" / "bin"))
LIB = BIN.parent / "lib" / "libunidle_fake_nvml.so"
SHORT_S = 1
SCRIPT = """count %d
name GPU
memory 100:50
utilisation 50
power 100000
power_limit 700000
energy 1000
temperature 50
clock 1000
throttle 0
pcie 5:16:5:16
pcie_rx 10
gpm 1
gpm.2 50
processes none
"""


def cpu_s(seconds, environment):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [str(BIN / "unidle"), "monitor", "--interval", "100", "--seconds", str(seconds), "--format", "csv"],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=True,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def share(devices, seconds, rounds, folder):
    """Returns the share of one core, median of the rounds."""
    environment = dict(os.environ, UNIDLE_NVML_LIBRARY=os.path.join(folder, "none.so"))
    if devices:
        script = os.path.join(folder, "script")
        Path(script).write_text(SCRIPT % devices)
        environment.update(UNIDLE_NVML_LIBRARY=str(LIB), UNIDLE_FAKE_NVML_SCRIPT=script)
    return statistics.median(
        (cpu_s(SHORT_S + seconds, environment) - cpu_s(SHORT_S, environment)) / seconds for _ in range(rounds)
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        shares = {
            devices: share(devices, arguments.seconds, arguments.rounds, folder) for devices in (0, 1, 8)
        }
    per_gpu = (shares[8] - shares[0]) / 8
    if arguments.json:
        print(
            json.dumps(
                {
                    "name": "monitor_process",
                    "unit": "share of a core for one more GPU, at 10 Hz",
                    "ours": per_gpu,
                    "base": shares[0],
                    "one_gpu": shares[1],
                    "eight_gpus": shares[8],
                    "peers": {"allowed": 0.001},
                    "ratio": 0.001 / max(per_gpu, 1e-9),
                    "machine": platform.processor() or platform.machine(),
                }
            )
        )
        return
    print("unidle monitor at 10 Hz, share of one core")
    for devices, used in shares.items():
        print("  %d GPU(s)      %8.4f %%" % (devices, used * 100))
    print("  one more GPU  %8.4f %%" % (per_gpu * 100))


if __name__ == "__main__":
    main()
