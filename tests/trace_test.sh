#!/usr/bin/env bash
# unidle trace: trace files, plain, compressed and damaged; windows in records; records as timelines.
subcommand=trace
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

kernel() { echo "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"$1\",\"pid\":0,\"tid\":7,\"ts\":$2,\"dur\":$3,\"args\":{\"device\":0,\"stream\":7}}"; }
mark() { echo "{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"unidle.clock.$1\",\"pid\":77,\"tid\":77,\"ts\":1,\"dur\":1}"; }
echo "{\"schemaVersion\":1,\"traceEvents\":[$(mark 5000000),$(kernel nvjet_hsh 100 50),$(kernel add 200 50)]}" >good.json
gzip -k good.json

# A file, plain and compressed: the same answer.
expect 0 good.json --format json
has out '"busy": 0.66'
has out '"matrix_units": 0.5'
sed 's/good.json.gz/good.json/' out >plain
expect 0 good.json.gz --format json
sed 's/good.json.gz/good.json/' out | cmp -s - plain || fail "packed and plain differ"
expect 0 good.json
has out "nvjet_hsh"

# Two side by side.
sed 's/"dur":50,/"dur":80,/2' good.json >slower.json
expect 0 good.json slower.json
has out "device busy"
has out "+30.0 us"
expect 0 good.json slower.json --format json
[ "$(grep -c '"file"' out)" = 2 ] || fail "not both: $(cat out)"

# Labels as torch writes them, and slices as begin and end.
sed 's/nvjet_hsh/a "b" of C:\\Users, NaN/' good.json >label.json
expect 0 label.json
has out 'a "b" of C:'
sed 's/"ts":1,"dur":1/"ts":1,"dur":NaN/' good.json >nan.json
expect 0 nan.json

# Damaged ones: exit code 2, one line that names the file, nothing on stdout.
head -c 200 good.json >cut.json
head -c 60 good.json.gz >cut.json.gz
echo '{"traceEvents":[}' >broken.json
echo '{"a":1}' >other.json
: >empty.json
for file in cut.json cut.json.gz broken.json other.json empty.json nowhere.json; do refused $file; has err "$file"; done

# A record with a window, which the command itself wrote in place of the profiler.
"$unidle" run -o rec --trace 3 -- sh -c 'cp good.json "$UNIDLE_PROBE_DIR/../trace-77.json"' 2>err || fail "run: $(cat err)"
has err "unidle trace rec"
expect 0 rec --format json
has out '"file": "trace-77.json"'
expect 0 rec -o timeline.json
has out timeline.json
: >new
[ "$(stat -c %a timeline.json)" = "$(stat -c %a new)" ] || fail "permissions: $(ls -l)"
# Process numbers come back: what a killed process of the same number left is in nobody's way.
sh -c ': >again.json.$$.part; exec "$unidle" trace rec -o again.json' >out 2>err || fail "left over: $(cat err)"
python3 - <<'PYTHON' || fail "the timeline"
import json
document = json.load(open("timeline.json"))
names = [event["name"] for event in document["traceEvents"]]
assert "nvjet_hsh" in names and document["otherData"]["record"] == "rec", names
PYTHON
rm rec/trace-77.json
expect 0 rec
expect 0 rec -o timeline.json.gz
has err "left out: trace-77.json"
zcat timeline.json.gz | python3 -c 'import json, sys; json.load(sys.stdin)' || fail "the packed timeline"

# Without a window.
"$unidle" run -o bare --trace 3 -- true 2>err
has err "no profiler window was recorded"
refused bare
expect 0 bare -o timeline.json
refused good.json -o x.json
expect 2 bare -o nowhere/x.json
"$unidle" run --trace 0 -- true 2>err
[ $? = 2 ] || fail "--trace 0"

# A window of the engine, if it was built and has pictures to train on.
if [ -x "$UNIDLE_BIN/unidle-train" ] && "$UNIDLE_BIN/unidle-train" "$UNIDLE_SOURCE/workloads/superres/tuned.yaml" --prepare >out 2>err; then
  "$unidle" run -o engine --trace 3 -- "$unidle" train "$UNIDLE_SOURCE/workloads/superres/tuned.yaml" train.samples=96 >out 2>err || fail "train: $(cat err)"
  expect 0 engine
  has out "3, "
  has out "aten::convolution_backward"
  lacks out "optimizer 0.0 %"
else
  echo "left out: a window of the engine (it was not built, or has no pictures)"
fi

# Kernels of a whole run: a program that loads the library like the CUDA driver, with a stand-in for CUPTI.
cat >driver.py <<'PYTHON'
import ctypes, os
print(ctypes.CDLL(os.environ["CUDA_INJECTION64_PATH"]).InitializeInjection())
PYTHON
export UNIDLE_CUPTI_LIBRARY="$UNIDLE_LIB/libunidle_mock_cupti.so"
query() { sqlite3 "$1/record.db" "$2"; }
same() { [ "$2" = "$3" ] || fail "$1: expected '$2', got '$3'"; }
if [ -f "$UNIDLE_CUPTI_LIBRARY" ]; then
  "$unidle" run -o kernels --kernels -- python3 driver.py >out 2>err || fail "--kernels: $(cat err)"
  same "the driver" 1 "$(cat out)"
  same "busy time" "gpu1|0.005" "$(query kernels "select subject, round(value, 6) from points join series on series = id where name = 'cupti.busy'")"
  same "kernels" 2.0 "$(query kernels "select value from points join series on series = id where name = 'cupti.kernels'")"
  same "matrix units" 0.75 "$(query kernels "select value from points join series on series = id where name = 'cupti.matrix_units'")"
  UNIDLE_MOCK_CUPTI=held "$unidle" run -o held --kernels -- python3 driver.py >out 2>err || fail "--kernels, held: $(cat err)"
  same "held" off "$(query held "select json_extract(body, '$.status') from notes where body like '%cupti%'")"
  UNIDLE_MOCK_CUPTI=full "$unidle" run -o full --kernels -- python3 driver.py >out 2>err || fail "--kernels, full: $(cat err)"
  query full "select body from notes where body like '%cupti%'" >out
  has out "3 records were lost"
fi
CUDA_INJECTION64_PATH=other.so "$unidle" run --kernels -- true 2>err
[ $? = 2 ] || fail "--kernels beside another tool"
"$unidle" run --kernels --trace 3 -- true 2>err
[ $? = 2 ] || fail "--kernels and --trace"

finish
