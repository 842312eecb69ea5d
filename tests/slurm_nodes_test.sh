#!/usr/bin/env bash
# Several processes and several nodes of one job, by torchrun under a real Slurm: their records are read as
# one run.
subcommand=slurm; . "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
needs_torch
. "$(dirname "${BASH_SOURCE[0]}")/slurm_cluster.sh"
start_cluster || { echo "skipped: Slurm does not run jobs here"; exit 77; }

# The last rank works longest: the others wait for it in every step.
cat >train.py <<'EOF'
import os, sys, time
import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
torch.set_num_threads(1)
dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
model = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
data = TensorDataset(torch.randn(4 * 150, 16), torch.randn(4 * 150, 1))
for x, y in DataLoader(data, batch_size=4):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    if rank == world - 1:
        time.sleep(0.04)
    loss.backward()
    optimizer.step()
if rank == 0:
    print("trained by", world)
if "fail" in sys.argv and rank == world - 1:
    raise ValueError("the last rank gives up")
dist.barrier()
dist.destroy_process_group()
EOF

submit() {  # NAME OPTION... -- COMMAND...: its id is in $id
  local name=$1
  shift
  # Nodes of this cluster have names that no network knows: all are this machine.
  expect 0 submit --format json --name "$name" --cpus-per-task 1 --mem 1500M --torchrun \
    --before 'scontrol() { echo 127.0.0.1; }' "$@"
  id=$(python3 -c 'import json; print(json.load(open("out"))["id"])')
}

submit processes --gpus 2 -- "$python" train.py; processes=$id
submit nodes --nodes 2 --gpus 1 -- "$python" train.py; nodes=$id
wait_for "$processes" COMPLETED FAILED
wait_for "$nodes" COMPLETED FAILED
submit broken --nodes 2 --gpus 1 -- "$python" train.py fail; broken=$id

# Two processes of one node share one record.
check "one record" test -f "results/unidle_$processes/record.db"
has "results/gpu_run_${processes}_detailed.log" "trained by 2"
expect 0 analyze "$processes" --format json
python3 - <<'EOF' || fail "two processes: $(cat out)"
import json
job = json.load(open("out"))["jobs"][0]
findings = {finding["id"]: finding for finding in job["diagnosis"]["findings"]}
assert job["per_node"] == [] and "rank 1" in " ".join(findings["straggler-rank"]["evidence"]), findings.keys()
EOF

# Two nodes have one each, and are diagnosed as one run.
has "results/gpu_run_${nodes}_detailed.log" "trained by 2"
ls "results/unidle_$nodes" >names
[ "$(wc -l <names)" = 2 ] || fail "records of nodes: $(cat names)"
expect 0 analyze "$nodes" --format json
python3 - "$(tail -n 1 names)" <<'EOF' || fail "two nodes: $(cat out)"
import json, sys
job = json.load(open("out"))["jobs"][0]
nodes = {one["node"]: one for one in job["per_node"]}
assert len(nodes) == 2 and sum(one["decides"] for one in nodes.values()) == 1, nodes
both = sum(one["samples_per_s"] for one in nodes.values())
whole = job["diagnosis"]["throughput"]["samples_per_s"]
assert abs(whole - both) < 0.01 * both, (whole, both)
evidence = " ".join(next(one for one in job["diagnosis"]["findings"] if one["id"] == "straggler-rank")["evidence"])
decides = next(name for name, one in nodes.items() if one["decides"])
assert "rank 1 on node " + decides in evidence, evidence
EOF
expect 0 analyze "$nodes"
has out "2 nodes:"
subcommand=diagnose expect 0 "results/unidle_$nodes"
has out "2 nodes:"
subcommand=diagnose expect 0 --job-id "$nodes" --results results
has out "straggler-rank"
has err "unidle_$nodes/$(head -n 1 names)"

wait_for "$broken" FAILED COMPLETED
expect 1 analyze "$broken"
has out "the last rank gives up"
finish
