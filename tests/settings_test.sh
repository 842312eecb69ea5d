#!/usr/bin/env bash
# setting-ignored for programs that parse arguments: an overridden default is not a configured value, and
# nothing is reported if the configured value is uncertain. Also for the engine.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
needs_torch
mkdir program && cd program || exit 1

cat >head.py <<'PY'
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("data", nargs="*")
parser.add_argument("-b", "--batch-size", default=128, type=int)
parser.add_argument("-j", "--workers", default=4, type=int)
parser.add_argument("--amp-dtype", default="float16", choices=["float16", "bfloat16"])
PY
cat >tail.py <<'PY'
import torch
from torch.utils.data import DataLoader, TensorDataset
data = TensorDataset(torch.randn(256, 4), torch.randn(256, 1))
loader = DataLoader(data, batch_size=size, num_workers=args.workers)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for x, y in loader:
    optimizer.zero_grad()
    torch.nn.functional.mse_loss(model(x), y).backward()
    optimizer.step()
PY

# said PARSING -- WORDS...: the diagnosis's findings about settings that are not in effect.
said() {
  local parsing=$1
  shift 2
  { cat head.py && printf '%s\n' "$parsing" && cat tail.py; } >train.py
  rm -rf record
  "$unidle" run -o record -- "$python" train.py "$@" >out.txt 2>err.txt || fail "the run failed: $(tail -n 5 err.txt)"
  "$unidle" diagnose record --format json >out.json
  "$python" - <<'PY'
import json
found = [e for f in json.load(open("out.json"))["findings"] if f["id"] == "setting-ignored" for e in f["evidence"]]
print("\n".join(e for e in found if e.startswith(("batch.size", "loader.workers", "precision.amp"))))
PY
}
silent() {
  local what=$1
  shift
  local found
  found=$(said "$@")
  [ -z "$found" ] || fail "$what: $found"
}

plain='args = parser.parse_args(); size = args.batch_size'
silent "short options" "$plain" -- -b 16 -j 0 folder
silent "attached short options" "$plain" -- -b16 -j0
silent "an abbreviation" "$plain" -- --batch 16 --work=0
silent "the last of two" "$plain" -- -b 64 --batch-size=16 -j 0
silent "a parser in steps with defaults from elsewhere" '
first = argparse.ArgumentParser(add_help=False)
first.add_argument("--config")
_, rest = first.parse_known_args()
parser.set_defaults(**{"batch" + "_size": 16, "workers": 0})
args = parser.parse_args(rest); size = args.batch_size' -- --config x.yaml
silent "a value that the program changes" '
args = parser.parse_args(); setattr(args, "batch" + "_size", 8); size = args.batch_size' -- -b 16 -j 0
silent "a value that another part of the program divides" '
args = parser.parse_args(); args.batch_size = args.batch_size // 2; size = args.batch_size' -- -b 16 -j 0

found=$(said 'args = parser.parse_args(); size = 32' -- -b 16 -j 0)
[[ $found == *"batch.size is configured as 16 (--batch-size), but 32 is in effect"* ]] || fail "a value that nothing reads: $found"
found=$(said 'parser.set_defaults(**{"batch" + "_size": 8}); args = parser.parse_args(); size = 32' -- -j 0)
[[ $found == *"batch.size is configured as 8 (--batch-size), but 32 is in effect"* ]] || fail "a default from elsewhere that nothing reads: $found"

# The engine trains whole steps of 4: training 16 of 18 samples is not an ignored setting.
superres=${UNIDLE_SOURCE:?}/workloads/superres/tuned.yaml
if [ -x "$UNIDLE_BIN/unidle-train" ] && "$UNIDLE_BIN/unidle-train" "$superres" --prepare >out.txt 2>err.txt; then
  "$unidle" run -o engine -- "$unidle" train "$superres" input.size=32 model.width=16 model.depth=2 cpu.threads=1 \
    device=cpu precision.amp=off batch.size=4 train.warmup_samples=0 train.samples=18 >out.txt 2>err.txt ||
    fail "train: $(cat err.txt)"
  "$unidle" diagnose engine --format json >out.json
  # The activities of its loader's threads: reading and decoding take more than nothing.
  "$python" - <<'PY' || fail "the engine does not tell the stages of its loader"
import json, sqlite3
notes = [json.loads(note) for (note,) in sqlite3.connect("engine/record.db").execute("SELECT body FROM notes")]
(stages,) = [note["stages"] for note in notes if note["type"] == "samples"]
assert len(stages) == 4 and stages[0] > 0 and stages[1] > 0, stages
PY
  grep -q 'train\.samples is configured' out.json && fail "whole steps are told as a setting ignored: $(cat out.json)"
else
  echo "left out: the engine's settings (it was not built, or has no pictures)"
fi

finish
