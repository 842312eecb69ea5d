#!/usr/bin/env bash
# Runs the benchmarks: the programs in build/bench/ and the scripts beside this one. `bench/run.sh [NAME]
# [ARGS ...]`
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export PATH="$PWD/build/bin:$PATH"

names() {
  { for file in build/bench/*; do [ -x "$file" ] && basename "$file"; done
    for file in bench/*.py; do basename "$file" .py; done; } | sort -u
}

run_one() {
  local name=$1; shift
  if [ -f "bench/$name.py" ]; then
    .venv/bin/python "bench/$name.py" "$@"
  elif [ -x "build/bench/$name" ]; then
    "build/bench/$name" "$@"
  else
    echo "bench: there is no $name; there are: $(names | tr '\n' ' ')" >&2
    exit 2
  fi
}

if [ $# -gt 0 ]; then
  run_one "$@"
else
  for name in $(names); do
    printf '\n== %s\n' "$name"
    run_one "$name"
  done
fi
