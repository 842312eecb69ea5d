#!/usr/bin/env bash
# unidle.data.Loader(device="cuda") on a real NVIDIA device: the bytes are those of the loader without a
# device, while kernels run; and how many samples per second reach the device, compared with torch's
# DataLoader.
subcommand=run
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
needs_gpu
export PYTHONPATH="$UNIDLE_BIN/../share/unidle/python"

cat >bytes.py <<'PROGRAM'
import sys

import numpy as np
import torch
from unidle.data import Loader, arrays, wrap

rows = np.random.default_rng(0).random((20000, 256), dtype=np.float32)
labels = np.arange(len(rows))
busy = torch.randn(2048, 2048, device="cuda", dtype=torch.bfloat16)


class Rows(torch.utils.data.Dataset):
    def __len__(self):
        return 4000

    def __getitem__(self, item):
        return torch.from_numpy(rows[item]), item


wrong = 0
for source, batch, epochs in ((arrays(rows, labels), 128, 2), (wrap(Rows()), 64, 1)):
    loader = Loader(source, batch, seed=1, workers=4, device="cuda")
    expected = Loader(source, batch, seed=1, workers=4)
    for epoch in range(epochs):
        taken = []
        for fields in loader:
            for _ in range(1 + len(taken) % 7):  # sometimes before the copies, sometimes after
                busy @ busy
            taken.append([field.clone() for field in fields])  # after all of these; `fields` is released
        for ours, theirs in zip(taken, expected):
            wrong += any(not torch.equal(one.cpu(), other) for one, other in zip(ours, theirs))
        if len(taken) != len(expected):
            sys.exit("%d batches instead of %d" % (len(taken), len(expected)))
if wrong:
    sys.exit("%d batches have other bytes" % wrong)
print("same bytes")
PROGRAM
"$python" bytes.py >out 2>err || fail "the bytes: $(tail -n 5 out err)"
has out "same bytes"

cat >rates.py <<'PROGRAM'
import os
import sys
import time

import numpy as np
import torch
from torch.utils.data import DataLoader, TensorDataset
from unidle.data import Loader, arrays, table

SECONDS = float(sys.argv[1])
workers = min(8, len(os.sched_getaffinity(0)))


def rate(batches):
    """Samples a second that arrive, after a first epoch."""
    seen, start = 0, None
    while start is None or time.monotonic() < start + SECONDS:
        for fields in batches():
            total = fields[0].sum()  # uses it
            seen += len(fields[0])
            if start is not None and time.monotonic() > start + SECONDS:
                break
        torch.cuda.synchronize()
        if start is None:
            seen, start = 0, time.monotonic()
    return seen / (time.monotonic() - start)


def of_torch(tensors, batch):
    loader = DataLoader(
        TensorDataset(*tensors), batch, shuffle=True, num_workers=workers, pin_memory=True, persistent_workers=True
    )
    return lambda: ([one.to("cuda", non_blocking=True) for one in fields] for fields in loader)


numbers = np.random.default_rng(0)
wide = numbers.random((100000, 256), dtype=np.float32)
pictures = numbers.integers(0, 255, (2000, 3, 224, 224), dtype=np.uint8)
cells = np.round(numbers.random((50000, 20)), 4).astype(np.float32)
with open("table.csv", "w") as file:
    np.savetxt(file, cells, "%.4f", ",", header=",".join("c%d" % number for number in range(20)), comments="")
features = ["c%d" % number for number in range(19)]
for name, source, tensors, batch in (
    ("rows", arrays(wide), [wide], 1024),
    ("pictures in memory", arrays(pictures), [pictures], 128),
    ("table", table("table.csv", features=features, targets=["c19"]), [cells[:, :19], cells[:, 19:]], 1024),
):
    loader = Loader(source, batch, device="cuda")
    ours = rate(lambda: loader)
    loader.close()
    theirs = rate(of_torch([torch.from_numpy(np.ascontiguousarray(one)) for one in tensors], batch))
    mb = sum(one[0].nbytes for one in tensors) / 1e6
    print("%s: %.0f samples/s (%.0f MB/s), DataLoader of torch %.0f (%.1f times)" % (
        name, ours, ours * mb, theirs, ours / theirs))
PROGRAM
"$python" rates.py "${UNIDLE_RATE_SECONDS:-2}" >rates 2>err || fail "the rates: $(tail -n 5 rates err)"
cat rates
[ "$(wc -l <rates)" = 3 ] || fail "not all rates: $(cat rates)"
finish
