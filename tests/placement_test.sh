#!/usr/bin/env bash
# cpu.numa: a process beside a GPU stays on the CPUs next to it, with a simulated tree of two nodes and a CUDA
# runtime that computes nothing.
subcommand=
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
needs_torch
needs_engine
needs_pretend_gpu "$UNIDLE_LIB/libunidle_cuda.so"
mapfile -t cpus < <("$python" -c 'import os; print(*sorted(os.sched_getaffinity(0)), sep="\n")')
if [ "${#cpus[@]}" -lt 2 ]; then
  echo "skipped: there is one CPU"
  exit 77
fi
make_houses 200
"$python" - <<'EOF2' || fail "Python could not make the model"
import torch
torch.jit.script(torch.nn.Linear(2, 1)).save("line.pt")
EOF2
cat >houses.yaml <<'EOF2'
workload: torchscript
script: {model: line.pt, table: houses.csv, targets: price}
batch.size: 20
loader.workers: 1
validation.interval: 0
train.samples: 400
cpu.numa: auto
EOF2
node=machine/sys/devices/system/node
gpu=machine/sys/bus/pci/devices/0000:10:00.0
mkdir -p "$node/node0" "$node/node1" "$gpu"
echo "${cpus[0]}" >"$node/node0/cpulist"
(IFS=, && echo "${cpus[*]:1}") >"$node/node1/cpulist"
echo 0 >"$gpu/numa_node"

# train SETTING...: its answer in out, its messages in err
train() {
  UNIDLE_HOST_ROOT="$PWD/machine" LD_PRELOAD="$UNIDLE_LIB/libunidle_fake_cuda.so" UNIDLE_FORCE_CUDA=1 \
    PYTORCH_TENSOREXPR=0 "$UNIDLE_BIN/unidle-train" -q houses.yaml --format json "$@" >out 2>err ||
    fail "exit code $?: $(cat err)"
}

train device=cuda
has out '"cpu.numa":"auto"'
has out '"cpu.threads":1,'
train device=cuda cpu.numa=off
has out '"cpu.numa":"off"'
has out "\"cpu.threads\":${#cpus[@]},"
train device=cpu  # one process: it uses all nodes
lacks out '"cpu.numa"'

echo -1 >"$gpu/numa_node"
train device=cuda
has out '"cpu.numa":"off"'
has err "does not say which NUMA node cuda:0 is next to"
echo 7 >"$gpu/numa_node"
train device=cuda
has out '"cpu.numa":"off"'
has err "cuda:0 is next to NUMA node 7, and this process may not use its CPUs"
rm -r "$node/node1"
train device=cuda
lacks out '"cpu.numa"'
lacks err "NUMA"
finish
