#!/usr/bin/env bash
# Runs clang-tidy on the sources that a build folder compiles, as it compiles them: several at once in the
# release preset, which parses their common headers once. Tests are left out to save time, and files with
# torch because its headers take minutes.
#   tools/tidy.sh BUILD_FOLDER [FILE ...]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
build=$1; shift
files=("$@")
if [ ${#files[@]} -eq 0 ]; then
  mapfile -t files < <(sed -nE 's/^ *"file": "(.*)",?$/\1/p' "$build/compile_commands.json" | grep -E '/src/unidle/' |
    grep -vE '_test\.cpp$|_(test|testing|nvml|nvml_old)\.dir/|/testing/|/src/unidle/train/|cmake_pch' | sort -u)
else
  for i in "${!files[@]}"; do  # a file that is compiled with others is checked with them
    together=$(grep -rlF --include='unity_*.cxx' "/${files[$i]}\"" "$build" | head -n 1 || true)
    files[i]=${together:-${files[$i]}}
  done
  mapfile -t files < <(printf '%s\n' "${files[@]}" | sort -u)
fi
# The compiler's precompiled headers do not work with clang: uses its commands without them.
database=$(mktemp -d)
trap 'rm -rf "$database"' EXIT
sed -E 's/ -(Winvalid-pch|fpch-preprocess|Wno-subobject-linkage)\b//g; s/ -include [^ ]*cmake_pch\.hxx//g' "$build/compile_commands.json" \
  > "$database/compile_commands.json"
printf '%s\n' "${files[@]}" | xargs -P "$(nproc)" -n 1 .venv/bin/clang-tidy -p "$database" --quiet --checks=-bugprone-suspicious-include \
  2> >(grep -vE 'warnings? (and|generated|treated)|^Suppressed|Processing file' >&2)
