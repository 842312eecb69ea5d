#!/usr/bin/env bash
# The commands in README.md and docs/ exist, and the program can print the output that is shown there.
subcommand=
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

python3 "$UNIDLE_SOURCE/tools/check_pages.py" "$unidle" --self-test >out 2>&1 || fail "the check does not work: $(cat out)"
python3 "$UNIDLE_SOURCE/tools/check_pages.py" "$unidle" >out 2>&1 || fail "$(cat out)"
