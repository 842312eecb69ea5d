#!/usr/bin/env bash
# The main job, end to end, on a workload (superres by default): observe the naive run, say why it is slow,
# optimise its config by measurement, run the result, and prove the gain. Called by `./dev demo [WORKLOAD]`;
# needs a build. All its files go to $UNIDLE_HOME, .unidle by default.
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
# Less time than the default of a search, so that the whole loop takes three minutes. A search reserves six
# trials' time for verification; keypoint's take the longest.
budget=75s
[ "$workload" != keypoint ] || budget=105s
step unidle optimize "$naive" --benchmark --budget "$budget" -o "$demo/$workload.yaml"
step unidle run -o "$demo/optimized" -- unidle train "$demo/$workload.yaml"
# Alternately: a change of the machine's load would make two single runs differ.
step unidle compare "$naive" "$demo/$workload.yaml" --runs 2 --seconds 10
search=$(ls -d "$UNIDLE_HOME"/runs/*-optimize | tail -n 1)   # names sort by time
step unidle report "$demo/naive" "$demo/optimized" "$search" -o "$demo/report.html"
printf '\nThe whole loop took %d s. Open %s\n' $((SECONDS - started)) "$demo/report.html"
