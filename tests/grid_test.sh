#!/usr/bin/env bash
# unidle train --grid: one run per value, or combination of values, on the same prepared data.
subcommand=train
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
needs_engine

printf 'workload: recsys\n' >config.yaml
settings=(prepare.source=generated prepare.samples=300 device=cpu cpu.threads=1 train.samples=64)
expect 0 config.yaml "${settings[@]}" --prepare
expect 0 config.yaml "${settings[@]}" --grid model.width=32,64 -q
[ "$(wc -l <out)" = 3 ] || fail "not a header and two rows: $(cat out)"
has out "model.width"
expect 0 config.yaml "${settings[@]}" --grid model.width=32,64 --format json -q
has out '{"grid":["model.width"],"runs":[{"settings":{"model.width":"32"},'
has out '"model.width":64'
# Each is the same run as on its own.
loss=$(sed -E 's/.*"loss_last":([^,]*),.*/\1/' out)
expect 0 config.yaml "${settings[@]}" model.width=64 --format json -q
has out "\"loss_last\":$loss"
# With two settings, every combination.
expect 0 config.yaml "${settings[@]}" --grid model.width=32,64 --grid batch.size=16,32 -q
[ "$(wc -l <out)" = 5 ] || fail "not a header and four rows: $(cat out)"
# A failed run does not affect the others; the checkpoints of each are in its own folder.
expect 1 config.yaml "${settings[@]}" --grid optimizer.lr=1e308,0.001 checkpoint.interval=32 checkpoint.folder=kept -q
has out "failed with optimizer.lr=1e308: "
[ "$(wc -l <out)" = 3 ] || fail "not a header, a row and a failure: $(cat out)"
ls kept/optimizer.lr=0.001/checkpoint-000000000064.pt >/dev/null || fail "no checkpoint of its own: $(ls -R kept)"
refused config.yaml "${settings[@]}" --grid model.width=32 --grid model.width=64
has err "has its values already"
refused config.yaml "${settings[@]}" --grid model.width=32 --prepare
has err "--prepare"
RANK=0 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=29400 refused config.yaml "${settings[@]}" --grid model.width=32
has err "--grid: trains one run after the other, in one process"
refused config.yaml "${settings[@]}" --grid model.width
refused config.yaml "${settings[@]}" --grid model.widht=32
has err "did you mean model.width"
finish
