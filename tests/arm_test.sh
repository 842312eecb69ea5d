#!/usr/bin/env bash
# What asks for the kind of processor compiles for 64-bit Arm as well.
subcommand=
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
if ! command -v aarch64-linux-gnu-g++ >/dev/null; then
  echo "skipped: no compiler for Arm"
  exit 77
fi
cd "$UNIDLE_SOURCE/src" || fail "no sources"
sources=$(grep -rlE '__x86_64__|__aarch64__' --include='*.c' --include='*.cpp' unidle)
[ "$(wc -l <<<"$sources")" -ge 3 ] || fail "which sources ask for the processor? $sources"
for source in $sources unidle/base/old_glibc/functions.c unidle/probe/unidle_probe.cpp; do
  case "$source" in
    *.c) compiler=(aarch64-linux-gnu-gcc) ;;
    *) compiler=(aarch64-linux-gnu-g++ -std=c++20) ;;
  esac
  check "$source" "${compiler[@]}" -O2 -fPIC -Wall -Wextra -Werror -I. -c "$source" -o /dev/null
done
finish
