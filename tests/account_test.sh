#!/usr/bin/env bash
# diagnose, compare, report, runs and the figures of optimize and slurm agree on a record: rates, shares of a
# step, phases, CPUs used by others.
set -euo pipefail

python3 "$UNIDLE_SOURCE/tests/account/compare_commands.py" "$UNIDLE_BIN" "$UNIDLE_BIN/../tests" \
  "$UNIDLE_SOURCE/src/unidle/diagnose/testing/timelines"
