#!/usr/bin/env bash
# `unidle run --apply` on a real NVIDIA device: knobs that only matter there are taken, and the program learns
# as before.
subcommand=run
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
needs_gpu

cat >program.py <<'PROGRAM'
import torch
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
pictures = torch.randn(512, 3, 32, 32)
data = TensorDataset(pictures, pictures.mean((1, 2, 3))[:, None])
net = torch.nn.Sequential(torch.nn.Conv2d(3, 32, 3), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(32, 1)).cuda()
optimizer = torch.optim.AdamW(net.parameters(), lr=3e-3)
losses, total = [], 0.0
for epoch in range(20):
    for x, y in DataLoader(data, batch_size=32, shuffle=True):
        loss = torch.nn.functional.mse_loss(net(x.cuda()), y.cuda())
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.detach())
        total += loss.item()
    print("epoch %d, mean loss so far %.4f" % (epoch, total / len(losses)))
first, last = torch.stack(losses[:16]).mean().item(), torch.stack(losses[-16:]).mean().item()
print("learns" if last < 0.5 * first else "does not learn: %g, then %g" % (first, last))
PROGRAM

# taken NAME KNOB=VALUE...: all of them
taken() {
  local record=$1 options=()
  shift
  for setting in "$@"; do options+=(--apply "$setting"); done
  expect 0 -o "$record" "${options[@]}" -- "$python" program.py
  has out learns
  "$python" - "$record" "$@" <<'PY' || fail "$record: not all were taken"
import json
import sqlite3
import sys

notes = [json.loads(row[0]) for row in sqlite3.connect(sys.argv[1] + "/record.db").execute("select body from notes")]
said = [note for note in notes if note["type"] == "apply"]
# Refused at one place, a knob may be taken at another.
taken = {note["knob"] for note in said if note["status"] == "taken"}
bad = [setting for setting in sys.argv[2:] if setting.split("=")[0] not in taken]
sys.exit("%s: %s" % (bad, said) if bad else 0)
PY
}

taken plain loader.pin_memory=true transfer.non_blocking=true cudnn.benchmark=true layout.channels_last=true optimizer.fused=true
taken bf16 precision.amp=bf16 precision.tf32=true
taken fp16 precision.amp=fp16
finish
