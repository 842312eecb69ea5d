#!/usr/bin/env bash
# bundle.sh BUILD FILE: one archive with the output of relocatable.sh, the programs and tests for a GPU,
# workloads and benches.
set -euo pipefail
source=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=$(readlink -f "$1")
file=$(realpath -m "$2")
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
root=$stage/unidle
bash "$source/tools/relocatable.sh" "$build" "$root"
mkdir -p "$root"/{gpu,tests,bench,workloads}
cp -r "$source"/tests/gpu/. "$root/gpu/"
(cd "$source/python" && find unidle -name '*.py' -print0 | xargs -0 cp --parents -t "$root/share/unidle/python")
cp "$source"/tests/*_gpu_test.sh "$source/tests/lib.sh" "$root/tests/"
cp -r "$source"/bench/*.py "$source"/bench/{peers,common} "$root/bench/"
(cd "$source/workloads" && find . -name '*.yaml' -print0 | xargs -0 -r cp --parents -t "$root/workloads")
find "$root" -name __pycache__ -prune -exec rm -rf {} +

cat >"$root/gpu_suite" <<'START'
#!/usr/bin/env bash
# gpu_suite [PYTHON] [OUT] [OPTION ...]: what can be tried on this machine's GPU, with the torch of PYTHON.
here=$(dirname "$(readlink -f "$0")")
python=${1:-python3}
export UNIDLE_PYTHON="$python" UNIDLE_BIN="$here/bin" UNIDLE_LIB="$here/lib" UNIDLE_SOURCE="$here"
exec "$python" "$here/gpu/gpu_suite.py" "$here/bin/unidle" --python "$python" --out "${2:-gpu-suite}" --tests "$here/tests" --root "$here" "${@:3}"
START
chmod +x "$root/gpu_suite"

mkdir -p "$(dirname "$file")"
tar -C "$stage" -czf "$file" unidle
bytes=$(stat -c %s "$file")
echo "$file: $((bytes / 1024 / 1024)) MB"
if [ "$bytes" -gt 60000000 ]; then
  echo "bundle: that is more than the 60 MB that can be taken to a machine with a GPU" >&2
  exit 1
fi
