#!/usr/bin/env bash
# unidle optimize, without measuring: edits, backups, exit codes.
naive=${UNIDLE_SOURCE:?}/workloads/superres/naive.yaml
[ -e "$naive" ] || exit 77
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

returns() {  # returns CODE COMMAND...: exit code, and one line on stderr that holds $needs
  local expected=$1
  shift
  "$@" >out.txt 2>err.txt
  local code=$?
  [ $code -eq "$expected" ] && [ "$(wc -l <err.txt)" -le 1 ] && { [ -z "${needs:-}" ] || grep -qF -- "$needs" err.txt; }
}
# Everything except the values: keys in their order, comments, blank lines.
skeleton() { sed -E 's/^( *[a-z_]+:)[^#]*(#.*)?$/\1 \2/; s/ +$//' "$1"; }

cp "$naive" naive.yaml
check "writes beside the configuration" returns 0 "$unidle" optimize naive.yaml
check "leaves the configuration alone" cmp naive.yaml "$naive"
check "has changed something" test "$(cmp naive.yaml naive.optimized.yaml; echo $?)" != 0
# Lines may be added but none removed, and comments stay word for word.
check "keeps comments and order" test -z "$(diff <(skeleton naive.yaml) <(skeleton naive.optimized.yaml) | grep '^<')"
check "shows a reason" grep -q '# loader.workers: ' out.txt
check "is stable: nothing is left to advise" returns 0 "$unidle" optimize naive.optimized.yaml --dry-run
check "says so" grep -q 'nothing to change' out.txt

needs="nowhere: is not a folder" check "a result has a place before a search" returns 2 "$unidle" optimize naive.yaml --benchmark -o nowhere/a.yaml
needs=".: is a folder" check "and is no folder" returns 2 "$unidle" optimize naive.yaml --benchmark -o .
check "changes in place" returns 0 "$unidle" optimize naive.yaml --in-place
check "keeps a backup" cmp naive.bak.yaml "$naive"
check "the same result" cmp naive.yaml naive.optimized.yaml
cp "$naive" naive.yaml && echo "# second" >>naive.yaml && cp naive.yaml second.yaml
check "a second time" returns 0 "$unidle" optimize naive.yaml --in-place
check "never overwrites a backup" cmp naive.bak.yaml "$naive"
check "numbers the next one" cmp naive.bak2.yaml second.yaml

cp "$naive" other.yaml
check "writes where it is told" returns 0 "$unidle" optimize other.yaml -o there.yaml
check "there it is" test -s there.yaml
check "writes nothing in a dry run" returns 0 "$unidle" optimize other.yaml --dry-run
check "nothing was written" test ! -e other.optimized.yaml
check "JSON is one document" bash -c "'$unidle' optimize other.yaml --dry-run --format json | python3 -c '
import json, sys
d = json.load(sys.stdin)
assert d[\"schema\"] == \"unidle.optimize/1\" and d[\"output\"] is None, d
assert all(c[\"class\"] in (\"exact\", \"numeric\") for c in d[\"changes\"]), d
assert any(c[\"knob\"] == \"loader.workers\" for c in d[\"changes\"]), d'"

sed 's/$/\r/' "$naive" >dos.yaml
check "takes Windows line ends" returns 0 "$unidle" optimize dos.yaml
check "keeps them" test "$(grep -c $'\r$' dos.optimized.yaml)" = "$(wc -l <dos.optimized.yaml)"

needs=missing.yaml check "missing file" returns 2 "$unidle" optimize missing.yaml
printf 'workload: superres\nloader: [1, 2\n' >broken.yaml
needs=broken.yaml: check "broken YAML" returns 2 "$unidle" optimize broken.yaml
printf 'loader: {workers: 0}\n' >none.yaml
check "no workload: another program's configuration" returns 0 "$unidle" optimize none.yaml --dry-run
check "its knobs are known by their names" grep -q '# loader.workers: ' out.txt
printf 'workload: superres\nprecision:\n  amp: true\n' >true.yaml
check "a choice that says true sets nothing" returns 0 "$unidle" optimize true.yaml --dry-run
printf 'workload: superres\nprecision:\n  amp: half\n' >amp.yaml
needs="amp.yaml:3: precision.amp" check "a value that is none" returns 2 "$unidle" optimize amp.yaml
printf '\nworkload: supperres\n' >typo.yaml
needs="typo.yaml:2: workload" check "an unknown workload" returns 2 "$unidle" optimize typo.yaml
needs="" check "output over the input" returns 2 "$unidle" optimize other.yaml -o other.yaml
check "a budget that is no time" returns 2 "$unidle" optimize other.yaml --budget soon
check "a command without {config}" returns 2 "$unidle" optimize none.yaml --benchmark -- true
# Configurations of other programs, in their own style.
foreign() {  # foreign FILE [OPTION...]: a dry run for a big machine
  "$unidle" optimize "$@" --dry-run --device "A100 40GB" --cpus 16
}
printf 'train:\n  num_workers: 0   # none\n  pin_memory: False\n  use_amp: False\n  amp_dtype: "float16"\n' >plain.yaml
foreign plain.yaml >out.txt 2>err.txt
check "counts the CPUs it is told" grep -q '^+  num_workers: 15   # none' out.txt
check "writes booleans as the file does" grep -q '^+  pin_memory: True' out.txt
check "chooses the format of the device" grep -q '^+  amp_dtype: "bfloat16"' out.txt
check "names what it depends on" grep -q 'depends on' out.txt
foreign plain.yaml --profile light >out.txt 2>err.txt
check "light leaves the arithmetic alone" bash -c '! grep -q "^+.*amp" out.txt && grep -q "^+  num_workers" out.txt'
"$unidle" optimize plain.yaml --dry-run --device T4 --cpus 4 >out.txt 2>err.txt
check "fp16 where there is no bf16" grep -q '^+  use_amp: True' out.txt
check "and the format stays" bash -c '! grep -q "^+  amp_dtype" out.txt'
"$unidle" optimize plain.yaml --dry-run --device cpu >out.txt 2>err.txt
check "no pinned memory without a GPU" bash -c '! grep -q "^+  pin_memory" out.txt'
needs=--device check "an unknown device" returns 2 "$unidle" optimize plain.yaml --device "Voodoo 2"
printf '{\n  "train_micro_batch_size_per_gpu": 4, // one\n  "fp16": {"enabled": true},\n  "zero_optimization": {"offload_param": {"pin_memory": false}}\n}\n' >ds.json
foreign ds.json --profile fast >out.txt 2>err.txt
check "leaves look-alikes alone" bash -c '! grep -q "^+.*pin_memory" out.txt'
printf 'compute_environment: LOCAL_MACHINE\ndistributed_type: MULTI_CPU\nmixed_precision: "no"\n' >cpu.yaml
foreign cpu.yaml >out.txt 2>err.txt
check "a run on CPUs gets no GPU's advice" grep -q 'nothing to change' out.txt
check "and the line that says so is named" grep -q 'line 2: distributed_type: MULTI_CPU' out.txt
printf 'num_workers: 0  # debuggers do not like workers\npin_memory: false\n' >decided.yaml
foreign decided.yaml >out.txt 2>err.txt
check "a decision is left alone" bash -c '! grep -q "^+num_workers" out.txt && grep -q "^+pin_memory" out.txt'
check "and quoted" grep -q 'its comment says: debuggers do not like workers' out.txt
printf 'title: "a poem"\n' >poem.yaml
check "a file without settings" returns 0 "$unidle" optimize poem.yaml
check "says so" grep -q 'no setting in it' out.txt
check "nothing was written" test ! -e poem.optimized.yaml

cp plain.yaml undo.yaml && chmod 640 undo.yaml
check "in place" returns 0 "$unidle" optimize undo.yaml --in-place --device H100 --cpus 8
check "has changed it" bash -c '! cmp -s plain.yaml undo.yaml'
check "keeps the permissions" test "$(stat -c %a undo.yaml)" = 640
cp undo.yaml done.yaml
check "takes it back" returns 0 "$unidle" optimize undo.yaml --undo
check "the same bytes" cmp plain.yaml undo.yaml
check "keeps what it was" cmp done.yaml undo.undone.yaml
check "the backup is gone" test ! -e undo.bak.yaml
needs=backup check "nothing more to take back" returns 2 "$unidle" optimize undo.yaml --undo

check "recognises" bash -c "'$unidle' knobs recognize plain.yaml ds.json --format json | python3 -c '
import json, sys
d = json.load(sys.stdin)
assert d[\"schema\"] == \"unidle.knobs/1\", d
a, b = d[\"files\"]
assert a[\"configured\"][\"loader.workers\"] == {\"value\": \"0\", \"path\": \"train.num_workers\", \"line\": 2}, a
assert b[\"framework\"] == \"deepspeed\" and not any(k[\"knob\"] == \"loader.pin_memory\" for k in b[\"knobs\"]), b'"

# Ctrl-C: the running trial ends, nothing is written, nothing is left running. Its pid is visible outside only
# without layers.
UNIDLE_PROTECTION=copy "$unidle" optimize none.yaml --benchmark -- bash -c 'echo $$ >"$0/pid.new"; mv "$0/pid.new" "$0/pid"; exec sleep 300' \
  "$folder" '{config}' >out.txt 2>err.txt &
optimizer=$!
for _ in $(seq 600); do [ -e pid ] && break; sleep 0.05; done
check "the trial started" test -s pid
kill -INT $optimizer
wait $optimizer
check "returns 130" test $? -eq 130
check "the trial is gone" bash -c '! kill -0 "$(cat pid)"'
check "nothing was written" test ! -e none.optimized.yaml

check "no leftovers" test -z "$(find . -name '*.tmp*' -o -name '*.bak3*')"

finish
