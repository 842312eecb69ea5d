#!/usr/bin/env bash
# unidle trace: trace files, plain, packed and damaged; windows in records; records as timelines.
subcommand=trace
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

kernel() { echo "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"$1\",\"pid\":0,\"tid\":7,\"ts\":$2,\"dur\":$3,\"args\":{\"device\":0,\"stream\":7}}"; }
mark() { echo "{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"unidle.clock.$1\",\"pid\":77,\"tid\":77,\"ts\":1,\"dur\":1}"; }
echo "{\"schemaVersion\":1,\"traceEvents\":[$(mark 5000000),$(kernel nvjet_hsh 100 50),$(kernel add 200 50)]}" >good.json
gzip -k good.json

# A file, plain and packed: the same answer.
expect 0 good.json --format json
has out '"busy": 0.66'
has out '"matrix_units": 0.5'
sed 's/good.json.gz/good.json/' out >plain
expect 0 good.json.gz --format json
sed 's/good.json.gz/good.json/' out | cmp -s - plain || fail "packed and plain differ"
expect 0 good.json
has out "nvjet_hsh"

# Damaged ones: exit code 2, one line that names the file, nothing on stdout.
head -c 200 good.json >cut.json
head -c 60 good.json.gz >cut.json.gz
echo '{"traceEvents":[}' >broken.json
echo '{"a":1}' >other.json
: >empty.json
for file in cut.json cut.json.gz broken.json other.json empty.json nowhere.json; do refused $file; has err "$file"; done

# A record with a window, that the command itself left there in place of the profiler.
"$unidle" run -o rec --trace 3 -- sh -c 'cp good.json "$UNIDLE_PROBE_DIR/../trace-77.json"' 2>err || fail "run: $(cat err)"
has err "unidle trace rec"
expect 0 rec --format json
has out '"file": "trace-77.json"'
expect 0 rec -o timeline.json
has out timeline.json
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

finish
