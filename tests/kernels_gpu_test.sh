#!/usr/bin/env bash
# `unidle run --kernels` on a real NVIDIA device: the driver loads libunidle_cupti.so, and the record contains
# kernels.
subcommand=run
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

needs_gpu

cat >program.py <<'PROGRAM'
import time

import torch

torch.manual_seed(0)
a = torch.randn(2048, 2048, device="cuda", dtype=torch.bfloat16)
end = time.monotonic() + 5
while time.monotonic() < end:
    b = a @ a
    a = (b / b.float().std()).to(a.dtype)
    torch.cuda.synchronize()
print(torch.isfinite(a).all().item())
PROGRAM
sql() { "$python" -c 'import sqlite3, sys; print(sqlite3.connect("record/record.db").execute(sys.argv[1]).fetchone()[0])' "$1"; }

expect 0 -o record --kernels -- "$python" program.py
has out True
status=$(sql "select json_extract(body, '\$.status') from notes where json_extract(body, '\$.type') = 'cupti' order by t_ns limit 1")
[ "$status" = on ] || fail "CUPTI was not on: $status, $(sql "select body from notes where json_extract(body, '\$.type') = 'cupti' limit 1")"
mean() { sql "select avg(points.value) from points join series on series.id = points.series where series.name = '$1'"; }
between() { "$python" -c 'import sys; v, low, high = map(float, sys.argv[1:]); sys.exit(not low <= v <= high)' "$@" || fail "$1 is not between $2 and $3"; }
between "$(mean cupti.busy)" 0.1 1
between "$(mean cupti.kernels)" 100 1000000
between "$(mean cupti.matrix_units)" 0.2 1
finish
