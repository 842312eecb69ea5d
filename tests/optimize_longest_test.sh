#!/usr/bin/env bash
# unidle optimize -- CMD: a batch size that fits in every trial, but not with the longest samples, is not
# chosen.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
needs_torch
mkdir program && cd program || exit 1

# A step has a fixed cost, so that larger batches are faster. Texts are packed end to end; there is space for
# 2000 letters. The long ones are never drawn in the few steps of a trial.
cat >train.py <<'PY'
import argparse
import time

import torch
from torch.utils.data import DataLoader, Dataset

parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=4)
size = parser.parse_args().batch_size


class Texts(Dataset):
    def __len__(self):
        return 100000

    def __getitem__(self, i):
        return torch.full((200 if i % 3000 == 7 else 4 + i % 7,), i / 100000)


def packed(texts):
    return torch.tensor([float(len(text)) for text in texts]), torch.cat(texts)


torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(1, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
generator = torch.Generator().manual_seed(1)
for epoch in range(1000):
    for lengths, letters in DataLoader(Texts(), batch_size=size, shuffle=True, collate_fn=packed, generator=generator):
        if len(letters) > 2000:
            raise RuntimeError("out of memory: no room for %d letters" % len(letters))
        time.sleep(0.01)
        loss = (model(letters[:, None]).mean() - lengths.mean() / 10).square()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
PY

expect 0 optimize --benchmark --yes --only batch.size --allow semantic --budget 1h --trials 3 --format json -- "$python" train.py --batch-size 4
cp out answer.json
"$python" - <<'PY' || fail "the longest samples are met"
import json

answer = json.load(open("answer.json"))
trials = answer["trials"]
probes = [trial for trial in trials if trial["stage"] == "longest"]
searched = [trial for trial in trials if trial["stage"] == "batch" and trial["verdict"] == "kept"]
assert max(int(trial["knobs"]["batch.size"]) for trial in searched) > 8, "no trial was too large: " + str(trials)
assert [probe["verdict"] for probe in probes[:-1]] == ["failed"] * (len(probes) - 1) and len(probes) > 1, probes
assert "no room for" in probes[0]["why"], probes
assert probes[-1]["verdict"] == "held" and "200 values each" in probes[-1]["why"], probes
taken = [change["to"] for change in answer["changes"] if change["knob"] == "batch.size"]
assert taken == ["8"], answer["changes"]
PY
finish
