#!/usr/bin/env bash
# unidle optimize -- CMD, if the data set returns rows of its arrays: a source of unidle.data is named, with
# the lines as a patch. The patch applies, and the program trains with it.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
needs_torch
mkdir program && cd program || exit 1

cat >train.py <<'PY'
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset


class Ratings(Dataset):
    def __init__(self, rows):
        rng = np.random.default_rng(0)
        self.x = rng.random((rows, 8), dtype=np.float32)
        self.y = self.x.sum(1)

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return torch.from_numpy(self.x[i]), self.y[i]


torch.manual_seed(0)
torch.set_num_threads(1)
net = torch.nn.Linear(8, 1)
opt = torch.optim.SGD(net.parameters(), lr=1e-2)
data = Ratings(20_000)
loader = DataLoader(data, batch_size=512, shuffle=True, drop_last=True)
for _epoch in range(60):
    for x, y in loader:
        opt.zero_grad()
        loss = torch.nn.functional.mse_loss(net(x).flatten(), y)
        loss.backward()
        opt.step()
print(loss.item() < 0.05, len(loader))
PY
cp train.py before.py

check "runs" "$unidle" run --steps 120 -o rec -- "$python" train.py
"$unidle" diagnose rec --format json >out.json 2>err.txt
check "diagnose shows the lines" "$python" - <<'PY'
import json

findings = json.load(open("out.json"))["findings"]
fixes = [(one["id"], fix) for one in findings for fix in one["fixes"] if fix["knob"] == "loader.replace"]
assert len(fixes) == 1 and fixes[0][0].startswith("loader-"), fixes
assert "+loader = unidle.data.Loader(unidle.data.like(data), batch_size=512, shuffle=True, drop_last=True)" in fixes[0][1]["patch"]
open("changes.patch", "w").write(fixes[0][1]["patch"])
PY
"$unidle" diagnose rec >out.txt 2>err.txt
check "as text too" grep -q "unidle.data.Loader(unidle.data.like(data)" out.txt

"$unidle" optimize --budget 1h --trials 2 --only loader.replace --format json -- "$python" train.py >out.json 2>err.txt </dev/null
check "is named, not tried" "$python" - <<'PY'
import json

document = json.load(open("out.json"))
assert not any("loader.replace" in trial["knobs"] for trial in document["trials"]), document["trials"]
assert any(open("changes.patch").read() in note for note in document["notes"]), document["notes"]
PY
check "leaves the file alone" cmp train.py before.py

check "the patch fits" patch -s -p0 -i changes.patch
PYTHONPATH=$UNIDLE_SOURCE/python UNIDLE_LIBRARY=$UNIDLE_BIN/../lib/libunidle.so "$python" train.py >out.txt 2>err.txt
check "the program trains with it" test "$(cat out.txt)" = "True 39"
finish
