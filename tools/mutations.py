#!/usr/bin/env python3
"""Puts small faults into the product, one at a time, and checks whether the tests find each.

    tools/mutations.py [WORD ...]      only faults whose file or test contains one of the words

Each is tried in the build folder `build`, with the one test that should find it. UNIDLE_FRESH=1 gives each
program of the Python tests its own Python. The exit code is 1 if a fault is not found. Faults in Python are
put into a copy, those in C++ into the tree itself, which is restored: nobody else may build there meanwhile.
Takes about 20 minutes of processor time.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"
SHIM, DATA, CORE = "python/shim/_unidle_shim/", "python/unidle/", "src/unidle/"

# (file, original text, replacement, ctest test, cases)
MUTATIONS = [
    (
        SHIM + "loop/steps.py",
        "parts.samples = round(parts.samples * parts.backwards / parts.fetches)",
        "pass",
        "python.test_loop_validation",
        "ValidationTest",
    ),
    (SHIM + "loop/steps.py", "if step == 0:", "if step == 1:", "python.test_loop", "LoopTest"),
    (
        SHIM + "loop/validation.py",
        "max(0, end - begin), self.steps, samples)",
        "max(0, end - begin), self.steps, 0)",
        "python.test_loop_validation",
        "ValidationTest",
    ),
    (
        SHIM + "loop/validation.py",
        "if preview.drawn or preview.most == 1 < self.usual_samples:",
        "if preview.drawn:",
        "python.test_loop_validation",
        "ValidationTest",
    ),
    (
        SHIM + "loop/own_cost.py",
        "self.in_vain = self.in_vain + 1 if steps < _TOO_SOON else 0",
        "self.in_vain = 0",
        "python.test_own_cost",
        "OwnCostTest",
    ),
    (
        SHIM + "facts/device_time.py",
        "if before is None or before.pauses != self.pauses:",
        "if before is None:",
        "python.test_device_time",
        "DeviceTimerTest",
    ),
    (
        SHIM + "samples/packing.py",
        'return tensor.view(torch.bfloat16) if shape[1] == "torch.bfloat16" else tensor',
        "return tensor",
        "python.test_fetching",
        "PackingTest",
    ),
    (
        SHIM + "samples/packing.py",
        "        or value.requires_grad\n",
        "",
        "python.test_fetching",
        "PackingTest",
    ),
    (
        SHIM + "source/purity.py",
        "        if old != new:\n",
        "        if False:\n",
        "python.test_fetching",
        "FetchingTest.test_samples_that_draw_are_refused",
    ),
    (
        SHIM + "knobs/kept_samples.py",
        "if end > self.room:",
        "if True:",
        "python.test_fetching",
        "FetchingTest.test_kept_samples_are_not_made_again",
    ),
    (
        SHIM + "samples/repeats.py",
        "known[1 if known[0] == digest else 2] += 1",
        "known[1] += 1",
        "python.test_samples",
        "SamplesTest.test_of_samples_that_differ_a_function_can_be_kept",
    ),
    (
        SHIM + "knobs/fp16.py",
        "scaling.multiply(1 / scale)",
        "scaling.multiply(1)",
        "python.test_fp16",
        "ScalingTest.test_gradients_are_those_without_it",
    ),
    (
        SHIM + "knobs/fp16.py",
        "max(1.0, self.scale / 2)",
        "max(1.0, self.scale)",
        "python.test_fp16",
        "ScalingTest.test_a_step_with_an_overflow_is_left_out",
    ),
    (
        SHIM + "facts/arguments.py",
        "    return all(any(word == other for other in rest) for word in some)",
        "    return True",
        "python.test_options",
        "OptionsTest.test_words_of_another_command_are_none",
    ),
    (
        SHIM + "trial/longest_batch.py",
        "key=lambda one: -found[one]",
        "key=lambda one: found[one]",
        "python.test_longest_batch",
        "",
    ),
    (
        SHIM + "loop/regular_steps.py",
        "return None if rest or steps < 0 else steps",
        "return steps",
        "python.test_regular_steps",
        "",
    ),
    (
        SHIM + "facts/memory_errors.py",
        "        if arguments is self.newest and arguments:\n            return\n",
        "",
        "python.test_causes",
        "CausesTest.test_a_program_that_looks_for_a_batch_that_fits",
    ),
    (
        SHIM + "host/exceptions.py",
        "note(exc_type, exc_value, exc_traceback, caught=True)",
        "note(exc_type, exc_value, exc_traceback, caught=False)",
        "python.test_causes",
        "CausesTest.test_training_goes_on_after_all_errors",
    ),
    (
        SHIM + "patches/module_classes.py",
        'if self.dynamo and "torch._dynamo" not in sys.modules:',
        "if self.dynamo:",
        "python.test_module_classes",
        "",
    ),
    (
        DATA + "data/orders.py",
        'b"" if values is None else values.tobytes()',
        'b""',
        "python.test_data_sampling",
        "",
    ),
    (
        CORE + "base/stats.cpp",
        "quantile(draws, 0.975)",
        "quantile(draws, 1)",
        "unit.base",
        "*",
    ),
    (
        CORE + "base/stats.cpp",
        "sum / static_cast<double>(values.size() - 1)",
        "sum / static_cast<double>(values.size())",
        "unit.base",
        "*",
    ),
    (CORE + "knobs/value.cpp", '{"bfloat16", "bf16"}', '{"bfloat16", "fp16"}', "unit.knobs", "*"),
    (CORE + "telemetry/numa.cpp", "a.number < b.number", "a.number > b.number", "unit.telemetry", "Numa*"),
    (
        CORE + "record/listing.cpp",
        'name.starts_with(".record.db.")',
        'name.starts_with(".record.dc.")',
        "unit.record",
        "Listing*",
    ),
    (
        CORE + "logs/failure_line.cpp",
        'LackWords{"insufficient shared memory", Lack::kSharedMemory}',
        'LackWords{"insufficient shared memory", Lack::kHostMemory}',
        "unit.logs",
        "*",
    ),
    (
        CORE + "observe/tail.cpp",
        "std::min<std::uint64_t>(end, limit_)",
        "std::min<std::uint64_t>(end, limit_ / 2)",
        "unit.observe",
        "*Tail*",
    ),
    (CORE + "trace/detail/ranges.cpp", "joined_.plus(TimeRanges(", "(TimeRanges(", "unit.trace", "*"),
    (
        CORE + "base/time_ranges.cpp",
        "std::max(one.begin_ns, at->end_ns)",
        "at->begin_ns",
        "unit.base",
        "*",
    ),
    (
        CORE + "diagnose/rules/padding_waste.cpp",
        "if (waste < policy.padding ||",
        "if (waste > policy.padding ||",
        "unit.diagnose",
        "*",
    ),
    (CORE + "diagnose/rules/straggler_rank.cpp", "own(a) < own(b)", "own(a) > own(b)", "unit.diagnose", "*"),
    (
        CORE + "diagnose/rules/loader_shallow_prefetch.cpp",
        ">= policy.bursts &&",
        ">= 0 * policy.bursts &&",
        "unit.diagnose",
        "*",
    ),
    (CORE + "data/detail/plan.cpp", "return (value + by - 1) / by;", "return value / by;", "unit.data", "*"),
    (
        CORE + "data/detail/orientation.cpp",
        "value = value << 8 |",
        "value = value << 7 |",
        "unit.data",
        "*rientation*",
    ),
    (CORE + "cache/key.cpp", "(high << 4 | low)", "(high << 3 | low)", "unit.cache", "*"),
    (
        CORE + "tune/search/budget.cpp",
        "needed_s() <= seconds_",
        "needed_s() >= seconds_",
        "unit.tune",
        "Budget*",
    ),
    (CORE + "account/steps.cpp", "parts[kSync] = seconds_of(step.sync_ns);", "", "unit.account", "*"),
    (CORE + "check/problems.cpp", "*host.cpu_quota < visible - 0.01", "false", "unit.check", "*"),
    (
        CORE + "monitor/distribution.cpp",
        "kept_[i] = kept_[2 * i];",
        "kept_[i] = kept_[i];",
        "unit.monitor",
        "*",
    ),
    (CORE + "slurm/job.cpp", "(tasks % nodes > 0 ? 1 : 0)", "0", "unit.slurm", "*"),
]


def selections():
    """{ctest test: "quick", "default" or "nightly"}."""
    told = subprocess.run(
        ["ctest", "--test-dir", BUILD, "--show-only=json-v1"], capture_output=True, text=True, check=True
    )
    found = {}
    for test in json.loads(told.stdout)["tests"]:
        labels = {p["name"]: p["value"] for p in test.get("properties", [])}.get("LABELS", [])
        found[test["name"]] = next((each for each in ("quick", "nightly") if each in labels), "default")
    return found


def changed(path, old, new):
    text = path.read_text()
    if text.count(old) < 1:
        raise SystemExit(f"{path} has no '{old}': the list of tools/mutations.py is out of date")
    path.write_text(text.replace(old, new, 1))
    return text


def installed(folder):
    """A copy of the programs and the Python tree, whose tests use the copy."""
    (folder / "bin").mkdir()
    for program in ("unidle", "unidle-train"):
        if (BUILD / "bin" / program).exists():
            shutil.copy(BUILD / "bin" / program, folder / "bin")
    (folder / "lib").symlink_to(BUILD / "lib")
    (folder / "share/unidle").mkdir(parents=True)
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "python", folder / "share/unidle/python", ignore=ignored)
    for name in ("tests", "docs"):
        (folder / "share/unidle" / name).symlink_to(ROOT / name)


def run_python(folder, test, cases):
    module = test.split(".")[1]
    command = [
        sys.executable,
        "-m",
        "unittest",
        *[f"{module}.{each}" if each else module for each in [cases]],
    ]
    environment = dict(os.environ, UNIDLE_BIN=str(folder / "bin"), PYTHONDONTWRITEBYTECODE="1")
    return subprocess.run(
        command, cwd=folder / "share/unidle/python/tests", env=environment, capture_output=True, text=True
    )


def python_mutation(path, old, new, test, cases):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        installed(folder)
        if (bare := run_python(folder, test, cases)).returncode != 0:
            raise SystemExit(f"{test} {cases} fails without any fault:\n{bare.stderr[-3000:]}")
        changed(folder / "share/unidle" / path, old, new)
        return run_python(folder, test, cases).returncode != 0


def core_mutation(path, old, new, test, cases):
    program = f"unidle_{test.split('.')[1]}_test"
    text = changed(ROOT / path, old, new)
    try:
        built = subprocess.run(["ninja", "-C", BUILD, "-j1", program], capture_output=True, text=True)
        if built.returncode != 0:
            raise SystemExit(f"{path}: does not compile with the fault:\n{built.stdout[-2000:]}")
        run = [BUILD / "tests" / program, "--gtest_brief=1", f"--gtest_filter={cases}"]
        return subprocess.run(run, capture_output=True).returncode != 0
    finally:
        (ROOT / path).write_text(text)


def main(words):
    known, missed = selections(), []
    print("| fault in | found by | selection | s |\n|---|---|---|---|", flush=True)
    for mutation in MUTATIONS:
        path, old, new, test, cases = mutation
        if words and not any(word in path or word in test for word in words):
            continue
        if test not in known:
            raise SystemExit(f"{test} is no test of ctest")
        began = time.monotonic()
        found = (python_mutation if path.endswith(".py") else core_mutation)(*mutation)
        missed += [] if found else [path]
        took = time.monotonic() - began
        told = f"{test} {cases}".rstrip() if found else "NOBODY"
        print(f"| {path} | {told} | {known[test]} | {took:.0f} |", flush=True)
    print(f"{len(missed)} not found: {', '.join(missed)}" if missed else "all found")
    return bool(missed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
