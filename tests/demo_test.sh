#!/usr/bin/env bash
# `unidle demo`: the loop on its own program; what it says where Python or torch lacks.
subcommand=demo
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

printf '#!/bin/sh\nexit 1\n' >no-torch
chmod +x no-torch
expect 3 --python "$PWD/no-torch"
has err "install torch for it"
expect 3 --python "$PWD/nothing"
has err "is not there"
[ ! -e unidle-demo ] || fail "a folder for a demo that cannot run"

python=$UNIDLE_SOURCE/.venv/bin/python
if ! "$python" -c 'import torch' 2>/dev/null; then
  echo "skipped: there is no torch"
  exit 77
fi
expect 0 --python "$python"
has out "epoch 3: loss"
grep -Eq '^\$ unidle run -o after --apply [a-z._]+=\S+ --' out || fail "no change: $(cat out)"
grep -Eq '^B trains [0-9.]+x as fast as A' out || fail "no gain: $(cat out)"
# The same losses: the change is exact.
[ "$(grep -c '^epoch [0-9]' out)" = 8 ] && [ "$(grep '^epoch [0-9]' out | sort -u | wc -l)" = 4 ] || fail "other results: $(cat out)"
[ -e unidle-demo/before/record.db ] && [ -e unidle-demo/after/record.db ] || fail "no records"
finish
