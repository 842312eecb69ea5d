#!/usr/bin/env bash
# The main job, end to end, on a workload (superres where none is named): observe the naive run, say why it is
# slow, optimise its config by measurement, run the result, and prove the gain. Called by `./dev demo
# [WORKLOAD]`; needs a build. Everything it makes lies in $UNIDLE_HOME, .unidle by default.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export PATH="$PWD/build/bin:$PATH"
export UNIDLE_HOME=${UNIDLE_HOME:-$PWD/.unidle}
workload=${1:-superres}
naive=workloads/$workload/naive.yaml
if [ ! -f "$naive" ]; then
  echo "dev demo: there is no workload $workload; there are: $(cd workloads && ls -d */naive.yaml | xargs dirname | xargs)" >&2
  exit 2
fi
demo=$UNIDLE_HOME/demo
rm -rf "$demo"
mkdir -p "$demo"
started=$SECONDS

step() { printf '\n\033[1m$ %s\033[0m\n' "$*" >&2; "$@"; }

step unidle train "$naive" --prepare
step unidle run -o "$demo/naive" -- unidle train "$naive"
step unidle diagnose "$demo/naive"
# With less time than a search has by itself, so that the whole loop is over in three minutes. A search keeps
# back six trials' time to verify what it found; keypoint's take the longest.
budget=75s
[ "$workload" != keypoint ] || budget=105s
step unidle optimize "$naive" --benchmark --budget "$budget" -o "$demo/$workload.yaml"
step unidle run -o "$demo/optimized" -- unidle train "$demo/$workload.yaml"
# In turns: what the machine does meanwhile would move two single runs apart.
step unidle compare "$naive" "$demo/$workload.yaml" --runs 2 --seconds 10
search=$(ls -d "$UNIDLE_HOME"/runs/*-optimize | tail -n 1)   # names sort by time
step unidle report "$demo/naive" "$demo/optimized" "$search" -o "$demo/report.html"
printf '\nThe whole loop took %d s. Open %s\n' $((SECONDS - started)) "$demo/report.html"
