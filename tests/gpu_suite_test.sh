#!/usr/bin/env bash
# The suite for a GPU, on a machine without one and on machines whose one or two GPUs are pretended: a driver
# that follows a script, a CUDA runtime that keeps time, and a stand-in for nvidia-smi.
subcommand=
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
needs_torch
needs_pretend_gpu "$UNIDLE_LIB/libunidle_fake_nvml.so"
. "$UNIDLE_SOURCE/tests/fake_cuda/as_machine.sh"
as_machine machine
suite="$UNIDLE_SOURCE/tests/gpu/gpu_suite.py"

# statuses FOLDER NAME...: of these, as "holds fails ..."; all others are told on stderr.
statuses() {
  "$python" - "$@" <<'PY'
import json
import sys

whole = json.load(open(sys.argv[1] + "/gpu-suite.json"))
assert whole["complete"] and whole["under_way"] is None, whole
told = {one["name"]: one["status"] for one in whole["results"]}
print(*(told.get(name) for name in sys.argv[2:]))
for one in whole["results"]:
    print(one["name"], one["status"], one.get("why") or one.get("said"), file=sys.stderr)
PY
}

UNIDLE_PYTHON="$python" "$python" "$suite" "$unidle" --python "$python" --out none --tests "$UNIDLE_SOURCE/tests" >out 2>err ||
  fail "without a GPU: exit code $?: $(cat out err)"
lacks out fails
lacks out holds
has out "skipped  superres"
[ -s none/gpu-suite.html ] || fail "no page"

names="check monitor check-smi mig fork capture gan second_device device_unused monitor-smi"
UNIDLE_PYTHON="$python" UNIDLE_PROGRAM_LENGTH=0.1 \
  with_gpu "$python" "$suite" "$unidle" --python "$python" --out some --seconds 800 \
  --only answers check-smi mig fork capture gan second_device device_unused monitor-smi >out 2>err ||
  fail "with a pretend GPU: exit code $?: $(cat out err)"
expected="holds holds holds skipped holds holds holds skipped holds holds"
# shellcheck disable=SC2086
got=$(statuses some $names 2>err)
[ "$got" = "$expected" ] || fail "of $names: $got, expected $expected: $(cat err)"

as_machine two 2
UNIDLE_PYTHON="$python" UNIDLE_PROGRAM_LENGTH=0.1 \
  with_gpu "$python" "$suite" "$unidle" --python "$python" --out two --seconds 300 --only second_device >out 2>err ||
  fail "with two pretend GPUs: exit code $?: $(cat out err)"
got=$(statuses two second_device 2>err)
[ "$got" = holds ] || fail "second_device: $got: $(cat err)"
finish
