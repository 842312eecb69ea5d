"""Shared by tests of guarded entries: programs of injection.py, bare and with faults in the shim."""

import json
import os
import shutil
import subprocess
import sys
import tempfile

from run_case import HERE, UNIDLE, environment

INJECTION = os.path.join(HERE, "injection.py")
SHIM = os.path.join(HERE, "..", "shim")
LIBRARY = os.path.join(os.path.dirname(UNIDLE), "..", "lib", "_unidle_light.abi3.so")

# The files with entries that programs reach only when the shim is asked for something; test_guard_asked.py
# reaches these, test_guard.py all others.
ASKED_FOR = ("knobs/", "trial/", "facts/profiler_window.py", "patches/waits.py")


def gives(programs, **more):
    # Kineto writes the time on stderr. The package is that of the build under test.
    env = environment(OMP_NUM_THREADS="1", KINETO_LOG_LEVEL="99", UNIDLE_BIN=os.path.dirname(UNIDLE), **more)
    told = subprocess.run([sys.executable, INJECTION, *programs], env=env, capture_output=True, text=True)
    if told.returncode != 0:
        raise AssertionError(told.stderr[-4000:])
    return json.loads(told.stdout.splitlines()[0])


class Guarded:
    maxDiff = None

    def observed(self, programs, **more):
        folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        probes = os.path.join(folder, "probe")  # a trace is written beside it
        os.mkdir(probes)
        ours = {"UNIDLE_PROBE_DIR": probes, "PYTHONPATH": SHIM, "UNIDLE_LIGHT_LIBRARY": LIBRARY}
        return gives(programs, **dict(ours, **more))

    def faults(self, runs, changed=(), **more):
        """Runs (environment, programs) with a fault in each entry that they reach, once. Each must give the
        same as bare, also without a fault, except for those in `changed`. Returns the entries that were not
        reached."""
        bare = gives([program for _, programs in runs for program in programs.split()])["programs"]
        done, reached, different = [], set(), []
        for asked, programs in runs:
            told = self.observed(programs.split(), UNIDLE_FAULTS_DONE=" ".join(done), **dict(asked, **more))
            for program, given in told["programs"].items():
                same = given == bare[program]
                self.assertEqual(same, program not in changed, (program, given, bare[program]))
            for entry, place, program, status, output in told["faults"]:
                done.append(place)
                reached.add(entry)
                if [status, output] != bare[program]:
                    different.append((place, told["entries"][entry], program, status, output[-600:]))
        self.assertEqual(different, [])
        return sorted(
            "%s %s" % (entry.split(":")[0], function)
            for entry, function in told["entries"].items()
            if entry not in reached
        )
