#!/usr/bin/env bash
# The suite for a GPU, on a machine without one and on machines with one or two pretend GPUs: a driver that
# follows a script, a CUDA runtime that keeps time, and a stand-in for nvidia-smi.
subcommand=
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
needs_torch
needs_pretend_gpu "$UNIDLE_LIB/libunidle_fake_nvml.so"
. "$UNIDLE_SOURCE/tests/fake_cuda/as_machine.sh"
as_machine machine
suite="$UNIDLE_SOURCE/tests/gpu/gpu_suite.py"

# statuses FOLDER NAME...: of these, as "holds fails ..."; all others are printed on stderr.
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
has out "skipped  parity"
[ -s none/gpu-suite.html ] || fail "no page"
"$python" "$suite" "$unidle" --list >out
has out "parity-begin bare fork"

names="check monitor check-smi mig fork capture gan second_device device_unused monitor-smi"
UNIDLE_PYTHON="$python" UNIDLE_PROGRAM_LENGTH=0.1 \
  with_gpu "$python" "$suite" "$unidle" --python "$python" --out some --seconds 800 \
  --only answers check-smi mig fork capture gan second_device device_unused monitor-smi >out 2>err ||
  fail "with a pretend GPU: exit code $?: $(cat out err)"
expected="holds holds holds skipped holds holds holds skipped holds holds"
# shellcheck disable=SC2086
got=$(statuses some $names 2>err)
[ "$got" = "$expected" ] || fail "of $names: $got, expected $expected: $(cat err)"

[ "$(find some -type f | wc -l)" = 3 ] || fail "more than the answer, its page and one archive: $(ls some)"
tar -tzf some/gpu-suite-records.tar.gz >archived || fail "the archive cannot be read"
has archived fork.rec/record.db

# The measured parts, without permission for GPM and CUPTI, and without a kernel compiler.
mkdir no-gcc
for tool in bash cat env ls python3 sed tr grep dirname basename readlink nproc ldd awk; do
  ln -s "$(command -v $tool)" no-gcc/
done
printf 'gpm 1\ngpm_sample error:4\n' >>"$pretend/nvml"
PATH="$PWD/no-gcc" UNIDLE_PYTHON="$python" UNIDLE_PROGRAM_LENGTH=0.1 \
  with_gpu "$python" "$suite" "$unidle" --python "$python" --out figures --seconds 300 --root "$UNIDLE_SOURCE" \
  --workloads recsys --prepared 4000 \
  --only speed readings driver parity >out 2>err
names="speed readings-launch_bound readings-loader_bound nvml-time gpm"
# shellcheck disable=SC2086
got=$(statuses figures $names 2>err)
[ "$got" = "holds holds holds holds skipped" ] || fail "of $names: $got: $(cat err)"
"$python" - figures/gpu-suite.json <<'PY' || fail "the comparison with torch is not whole: $(cat err)"
import json
import sys

told = {one["name"]: one for one in json.load(open(sys.argv[1]))["results"]}
rows = told["parity-recsys"]["rows"]
for side, way in (("PyTorch", "eager"), ("PyTorch", "graph"), ("unidle", "off"), ("unidle", "graph")):
    assert [row for row in rows if row.get("way") == way and row["side"] == side][0]["samples_per_s"] > 0, (side, way)
assert "error" in [row for row in rows if row.get("way") == "max-autotune"][0], rows
assert [row["ratio"] for row in rows if "ratio" in row][0] > 0, rows
assert told["naive-to-tuned"]["gains"]["recsys"] > 0, told
PY

as_machine two 2
UNIDLE_PYTHON="$python" UNIDLE_PROGRAM_LENGTH=0.1 \
  with_gpu "$python" "$suite" "$unidle" --python "$python" --out two --seconds 300 --only second_device >out 2>err ||
  fail "with two pretend GPUs: exit code $?: $(cat out err)"
got=$(statuses two second_device 2>err)
[ "$got" = holds ] || fail "second_device: $got: $(cat err)"
finish
