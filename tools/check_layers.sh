#!/usr/bin/env bash
# Fails if a module includes a later one, if a folder of a module includes a later one, if a folder of the
# Python shim imports from a later one, or if torch is included outside train, workloads, engine, python and
# the benchmarks that are named for it. --self-test proves that it can fail.
set -euo pipefail
cd "${UNIDLE_TREE:-$(dirname "${BASH_SOURCE[0]}")/..}"

ORDER=(base language knobs traits telemetry record logs probe observe trace account diagnose data cache experiment tune report check monitor slurm train cli)
SHIM_FOLDERS=(host loop source samples facts session patches trial knobs install __init__)

# The folders from which a folder of the shim, or a file beside the folders, may import.
check_shim() {
  local failures=0 rank=0 name path line room from
  declare -A position
  for name in "${SHIM_FOLDERS[@]}"; do position[$name]=$((rank++)); done
  while IFS=: read -r path line from; do
    room=${path#*/_unidle_shim/}; room=${room%%/*}; room=${room%.py}
    from=${from#*_unidle_shim}; from=${from#.}; from=${from# import }; from=${from%%[. ,]*}
    if [ -z "${position[$room]+x}" ] || [ -z "${position[$from]+x}" ] || [ "${position[$from]}" -gt "${position[$room]}" ]; then
      echo "$path:$line: layers: $room of the shim must not import from ${from:-it}"; failures=1
    fi
  done < <(grep -rnE '^ *(from|import) +_unidle_shim' python/shim/_unidle_shim --include='*.py')
  return $failures
}

# The folders of a module with several: a file includes only from its own and those to the left. Files
# directly in the module's folder are above all of them; testing/ is for tests.
declare -A MODULE_FOLDERS=([tune]="advice trials search output")

# check_folders MODULE
check_folders() {
  local failures=0 rank=0 room folder file line included
  declare -A position
  for room in ${MODULE_FOLDERS[$1]} ""; do position[/$room]=$((rank++)); done
  for folder in src/unidle/"$1"/*/; do
    room=$(basename "$folder")
    if [ "$room" != testing ] && [ -z "${position[/$room]+x}" ]; then
      echo "layers: src/unidle/$1/$room is not in the order of rooms (tools/check_layers.sh)"; failures=1
    fi
  done
  while IFS=: read -r file line included; do
    room=${file#src/unidle/"$1"/}; included=${included#*\"unidle/"$1"/}; included=${included%\"*}
    case $room in */*) room=${room%%/*} ;; *) room= ;; esac
    case $included in */*) included=${included%%/*} ;; *) included= ;; esac
    if [ "$room" = testing ] || { [ "$included" = testing ] && [[ $file == *_test.cpp ]]; }; then
      continue
    fi
    if [ -z "${position[/$included]+x}" ] || [ "${position[/$included]}" -gt "${position[/$room]:-0}" ]; then
      echo "$file:$line: layers: ${room:-$1} must not include ${included:-what lies beside the rooms}"; failures=1
    fi
  done < <(grep -rnE '^[[:space:]]*#[[:space:]]*include[[:space:]]*"unidle/'"$1"'/' "src/unidle/$1" --include='*.h' \
             --include='*.cpp')
  return $failures
}

check() {
  local failures=0 rank=0 module file line included
  declare -A position
  for module in "${ORDER[@]}"; do position[$module]=$((rank++)); done
  for folder in src/unidle/*/; do
    module=$(basename "$folder")
    if [ -z "${position[$module]+x}" ]; then
      echo "layers: src/unidle/$module is not in the order of modules (tools/check_layers.sh)"; failures=1; continue
    fi
    while IFS=: read -r file line included; do
      included=${included#*\"unidle/}; included=${included%%/*}
      if [ -z "${position[$included]+x}" ] || [ "${position[$included]}" -gt "${position[$module]}" ]; then
        echo "$file:$line: layers: $module must not include $included"; failures=1
      fi
    done < <(grep -rnE '^[[:space:]]*#[[:space:]]*include[[:space:]]*"unidle/' "$folder" --include='*.h' --include='*.cpp')
  done
  for module in "${!MODULE_FOLDERS[@]}"; do
    if [ -d "src/unidle/$module" ]; then check_folders "$module" || failures=1; fi
  done
  while IFS=: read -r file line _; do
    echo "$file:$line: layers: torch belongs to train, workloads, engine and the Python bridge"; failures=1
  done < <(grep -rnE '^[[:space:]]*#[[:space:]]*include[[:space:]]*[<"](torch|ATen|c10|caffe2)/' src bench workloads engine python tests \
             --include='*.h' --include='*.cpp' 2>/dev/null |
           grep -vE '^(src/unidle/train/|workloads/|engine/|python/|bench/[a-z_]*_torch\.cpp)')
  check_shim || failures=1
  return $failures
}

self_test() {
  local tree; tree=$(mktemp -d); trap 'rm -rf "$tree"' RETURN
  mkdir -p "$tree"/src/unidle/{base,record,cli,tune/advice,tune/search,tune/testing} "$tree"/{bench,workloads,tests} \
    "$tree"/python/shim/_unidle_shim/{host,knobs}
  echo 'from _unidle_shim.host import guard' > "$tree/python/shim/_unidle_shim/knobs/fine.py"
  echo '#include "unidle/base/error.h"' > "$tree/src/unidle/record/fine.cpp"
  UNIDLE_TREE=$tree bash "${BASH_SOURCE[0]}" >/dev/null || { echo "self-test: a clean tree was refused"; return 1; }
  echo '#include "unidle/record/record.h"' > "$tree/src/unidle/base/upward.cpp"
  ! UNIDLE_TREE=$tree bash "${BASH_SOURCE[0]}" >/dev/null || { echo "self-test: an upward include passed"; return 1; }
  rm "$tree/src/unidle/base/upward.cpp"
  echo '    from _unidle_shim.knobs import fine' > "$tree/python/shim/_unidle_shim/host/upward.py"
  ! UNIDLE_TREE=$tree bash "${BASH_SOURCE[0]}" >/dev/null || { echo "self-test: an upward import passed"; return 1; }
  rm "$tree/python/shim/_unidle_shim/host/upward.py"
  echo '#include <torch/torch.h>' > "$tree/src/unidle/record/torch.cpp"
  ! UNIDLE_TREE=$tree bash "${BASH_SOURCE[0]}" >/dev/null || { echo "self-test: a stray torch include passed"; return 1; }
  rm "$tree/src/unidle/record/torch.cpp"
  echo '#include "unidle/tune/advice/proposals.h"' > "$tree/src/unidle/tune/search/fine.cpp"
  echo '#include "unidle/tune/search/tuner.h"' > "$tree/src/unidle/tune/optimize.cpp"
  echo '#include "unidle/tune/testing/fake_runner.h"' > "$tree/src/unidle/tune/search/tuner_test.cpp"
  UNIDLE_TREE=$tree bash "${BASH_SOURCE[0]}" >/dev/null || { echo "self-test: clean rooms were refused"; return 1; }
  local wrong
  for wrong in search/tuner.h testing/fake_runner.h optimize.h; do
    echo "#include \"unidle/tune/$wrong\"" > "$tree/src/unidle/tune/advice/upward.cpp"
    ! UNIDLE_TREE=$tree bash "${BASH_SOURCE[0]}" >/dev/null || { echo "self-test: $wrong passed in advice"; return 1; }
  done
  rm "$tree/src/unidle/tune/advice/upward.cpp"
  mkdir "$tree/src/unidle/tune/attic"
  ! UNIDLE_TREE=$tree bash "${BASH_SOURCE[0]}" >/dev/null || { echo "self-test: an unknown room passed"; return 1; }
  echo "layers: the check works"
}

if [ "${1:-}" = --self-test ]; then self_test; else check; fi
