#!/usr/bin/env bash
# Settings of the engine against the machine it runs on.
subcommand=train
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
needs_engine

printf 'workload: recsys\n' >config.yaml
settings=(prepare.source=generated prepare.samples=300 device=cpu cpu.threads=1 train.samples=64 batch.size=64 -q)
expect 0 config.yaml "${settings[@]}" --prepare

# bf16 is taken, with a warning where the CPU has no units for it.
mkdir -p host/proc
printf 'model name\t: Some CPU\nflags\t: fpu avx2\n' >host/proc/cpuinfo
UNIDLE_HOST_ROOT=$PWD/host expect 0 config.yaml "${settings[@]}" precision.amp=bf16
has err "no units for bf16"
UNIDLE_HOST_ROOT=$PWD/host expect 0 config.yaml "${settings[@]}"
lacks err "no units for bf16"
printf 'model name\t: Some CPU\nflags\t: fpu avx512_bf16\n' >host/proc/cpuinfo
UNIDLE_HOST_ROOT=$PWD/host expect 0 config.yaml "${settings[@]}" precision.amp=bf16
lacks err "no units for bf16"
finish
