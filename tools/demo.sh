#!/usr/bin/env bash
# The main job, end to end, on the superres workload: observe the naive run, say why it is slow, optimise its
# config by measurement, run the result, and prove the gain. Called by `./dev demo`; needs a build. Everything
# it makes lies in $UNIDLE_HOME, .unidle by default.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export PATH="$PWD/build/bin:$PATH"
export UNIDLE_HOME=${UNIDLE_HOME:-$PWD/.unidle}
demo=$UNIDLE_HOME/demo
rm -rf "$demo"
mkdir -p "$demo"
started=$SECONDS

step() { printf '\n\033[1m$ %s\033[0m\n' "$*" >&2; "$@"; }

step unidle train workloads/superres/naive.yaml --prepare
step unidle run -o "$demo/naive" -- unidle train workloads/superres/naive.yaml
step unidle diagnose "$demo/naive"
step unidle optimize workloads/superres/naive.yaml --benchmark -o "$demo/superres.yaml"
step unidle run -o "$demo/optimized" -- unidle train "$demo/superres.yaml"
# In turns: what the machine does meanwhile would move two single runs apart.
step unidle compare workloads/superres/naive.yaml "$demo/superres.yaml" --runs 2
search=$(ls -d "$UNIDLE_HOME"/runs/*-optimize | tail -n 1)   # names sort by time
step unidle report "$demo/naive" "$demo/optimized" "$search" -o "$demo/report.html"
printf '\nThe whole loop took %d s. Open %s\n' $((SECONDS - started)) "$demo/report.html"
