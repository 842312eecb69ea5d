#!/usr/bin/env bash
# Every command reports the same figures of a record: rates, shares of a step, phases, CPUs used by others.
set -euo pipefail

python3 "$UNIDLE_SOURCE/tests/account/compare_commands.py" "$UNIDLE_BIN" "$UNIDLE_BIN/../tests" \
  "$UNIDLE_SOURCE/src/unidle/diagnose/testing/timelines"
