"""Shared by tests of programs on a GPU that computes nothing and keeps time (tests/fake_cuda): a real PyTorch
with CUDA, whose kernels only take time."""

import importlib.util
import json
import os
import struct
import subprocess
import sys
import textwrap
import unittest

import run_case
from run_case import HERE, UNIDLE

FAKE = os.path.join(os.path.dirname(UNIDLE), "..", "lib", "libunidle_fake_cuda.so")
FAKE_NVML = os.path.join(os.path.dirname(FAKE), "libunidle_fake_nvml.so")
PROGRAMS = os.path.join(HERE, "..", "..", "tests", "gpu", "programs")


def cuda_of_torch():
    """ "13.0", or None. Does not import torch itself: it would load without the fake."""
    found = importlib.util.find_spec("torch")
    if found is None:
        return None
    known = {}
    with open(os.path.join(os.path.dirname(found.origin), "version.py")) as file:
        exec(file.read(), known)  # noqa: S102
    return known.get("cuda")


# For unittest.skipIf.
SKIPPED = (
    not os.path.exists(FAKE) or not (cuda_of_torch() or "").startswith("13."),
    "this Python has no torch for CUDA 13, or no fake of it was built",
)


@unittest.skipIf(*SKIPPED)
class GpuCase(run_case.RunCase):
    """`self.said`: the log of the fake device."""

    fresh = True  # the fake device's time begins with the process
    speed = "devices=2"

    def environment(self):
        return {
            "LD_PRELOAD": FAKE,
            "UNIDLE_ASSUME_DEVICE": "1",
            "UNIDLE_FAKE_CUDA": self.speed,
            "UNIDLE_FAKE_CUDA_LOG": os.path.join(self.folder, "said"),
            "UNIDLE_FAKE_CUDA_BUSY": os.path.join(self.folder, "busy"),
            "UNIDLE_PROGRAM_LENGTH": "0.1",
        }

    def run_bare(self, *command):
        given = run_case.environment(**self.environment())
        return subprocess.run(
            self.command(command, given),
            cwd=self.folder,
            env=given,
            capture_output=True,
            text=True,
        )

    def run_on_gpu(self, *command, options=()):
        for name in ("said", "busy"):
            path = os.path.join(self.folder, name)
            if os.path.exists(path):
                os.remove(path)
        done = self.observed(sys.executable, *command, options=options, **self.environment())
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([note for note in self.record.notes("shim") if note["status"] == "off"], [])
        with open(os.path.join(self.folder, "said")) as file:
            self.said = file.read().splitlines()
        return done

    def program(self, name):
        return os.path.join(PROGRAMS, name + ".py")

    def same_as_without_us(self, name):
        bare = self.run_bare(sys.executable, self.program(name))
        done = self.run_on_gpu(self.program(name))
        self.assertEqual((done.stdout, done.stderr), (bare.stdout, bare.stderr))

    def inline(self, text, *options):
        return self.run_on_gpu("-c", textwrap.dedent(text), options=options)

    def device_times(self):
        return self.record.rows(
            "select points.value from points join series on series.id = points.series "
            "where series.name = 'step.device'"
        )

    def busy_seconds(self):
        with open(os.path.join(self.folder, "busy"), "rb") as file:
            return struct.unpack("q", file.read(8))[0] * 1e-9

    def driver(self, *lines):
        """A driver with these answers, for the programs that run next."""
        path = os.path.join(self.folder, "driver")
        with open(path, "w") as file:
            file.write("\n".join(["count 1", "uuid GPU-00000001-0000-4000-8000-000000000000", *lines]) + "\n")
        environment = self.environment()
        more = {"UNIDLE_NVML_LIBRARY": FAKE_NVML, "UNIDLE_FAKE_NVML_SCRIPT": path}
        self.environment = lambda: dict(environment, **more, CUDA_VISIBLE_DEVICES=self.visible)

    def diagnosis(self):
        done = subprocess.run(
            [UNIDLE, "diagnose", self.record.folder, "--format", "json"], capture_output=True, text=True
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)
