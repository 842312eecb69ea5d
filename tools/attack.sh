#!/usr/bin/env bash
# The attacks of docs/safety.md in their long version, with counts. Usage: tools/attack.sh [SECTION ...]
# One file per section in tools/attack/; each defines attack_NAME, which runs in its own folder and fails if
# results differ from the bare run. The short versions run as tests.
set -u
source_folder=$(cd "$(dirname "$0")/.." && pwd)
export UNIDLE_SOURCE=$source_folder UNIDLE_BIN=${UNIDLE_BIN:-$source_folder/build/bin}
export unidle=$UNIDLE_BIN/unidle
failed=()
sections=("$@")
[ $# -gt 0 ] || mapfile -t sections < <(cd "$source_folder/tools/attack" && ls -- *.sh | sed 's/\.sh$//')
for section in "${sections[@]}"; do
  folder=$(mktemp -d)
  (
    . "$source_folder/tools/attack/$section.sh" && cd "$folder" && export UNIDLE_HOME="$folder/.unidle" && "attack_$section"
  ) || failed+=("$section")
  rm -rf "$folder"
done
[ ${#failed[@]} = 0 ] || echo "FAILED: ${failed[*]}"
exit $((${#failed[@]} > 0))
