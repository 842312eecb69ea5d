#!/usr/bin/env bash
# clang-tidy over the sources that a build folder compiles, two at a time. Tests and files that parse torch are left out:
# the first for time, the second because their headers take minutes.
#   tools/tidy.sh BUILD_FOLDER [FILE ...]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
build=$1; shift
files=("$@")
if [ ${#files[@]} -eq 0 ]; then
  mapfile -t files < <(git ls-files --cached --others --exclude-standard 'src/*.cpp' | grep -vE '_test\.cpp$|/testing/|^src/unidle/train/')
fi
# The launcher and precompiled headers of the build are not clang's.
printf '%s\n' "${files[@]}" | xargs -P "$(nproc)" -n 4 .venv/bin/clang-tidy -p "$build" --quiet 2> >(grep -vE 'warnings? (generated|treated)|^Suppressed' >&2)
