#!/usr/bin/env bash
# bundle.sh BUILD FILE: one archive with the programs of a build, the libraries that they need beside the C
# library's, the shim, the programs and tests for a GPU, workloads and benches. LibTorch is not in it:
# unidle-train takes that of the Python it is shown ($UNIDLE_PYTHON, or python3), which has to be of the
# version that it was built with.
set -euo pipefail
source=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=$(readlink -f "$1")
file=$(realpath -m "$2")
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
root=$stage/unidle
mkdir -p "$root"/{bin,lib,libexec,share/unidle/python,gpu,tests,bench,workloads}

cp "$build/bin/unidle" "$root/bin/"
for library in libunidle_probe.so _unidle_light.abi3.so libunidle_cupti.so libunidle_cuda.so; do
  if [ -e "$build/lib/$library" ]; then cp "$build/lib/$library" "$root/lib/"; fi
done
(cd "$source/python" && find shim -name '*.py' -print0 | xargs -0 cp --parents -t "$root/share/unidle/python")
cp -r "$source"/tests/gpu/. "$root/gpu/"
cp "$source"/tests/*_gpu_test.sh "$source/tests/lib.sh" "$root/tests/"
cp -r "$source"/bench/*.py "$source"/bench/peers "$root/bench/"
(cd "$source/workloads" && find . -name '*.yaml' -print0 | xargs -0 -r cp --parents -t "$root/workloads")
find "$root" -name __pycache__ -prune -exec rm -rf {} +

# Not the C library, which every machine has, and nothing that comes with torch.
libraries_of() {
  ldd "$1" | awk '$2 == "=>" && $3 ~ /^\// {print $3}' |
    grep -vE '/(libc|libm|libdl|librt|libpthread|libutil|ld-linux[^/]*)\.so|/torch/lib/|/nvidia/|/libcuda'
}
programs=("$root/bin/unidle")
if [ -x "$build/bin/unidle-train" ]; then
  cp "$build/bin/unidle-train" "$root/libexec/"
  programs+=("$root/libexec/unidle-train")
  cat >"$root/bin/unidle-train" <<'START'
#!/usr/bin/env bash
# Starts the engine with the LibTorch of a Python that has torch: $UNIDLE_PYTHON, or python3.
here=$(dirname "$(readlink -f "$0")")
python=${UNIDLE_PYTHON:-python3}
torch=$("$python" -c "import importlib.util as u; s = u.find_spec('torch'); print(s.submodule_search_locations[0] if s else '')" 2>/dev/null)
if [ -z "$torch" ]; then
  echo "unidle-train: $python has no torch; set UNIDLE_PYTHON to one that has" >&2
  exit 3
fi
export LD_LIBRARY_PATH="$torch/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
exec "$here/../libexec/unidle-train" "$@"
START
  chmod +x "$root/bin/unidle-train"
fi
for program in "${programs[@]}"; do
  libraries_of "$program" | while read -r library; do cp -nL "$library" "$root/lib/"; done
done
strip --strip-unneeded "$root"/bin/unidle "$root"/libexec/* "$root"/lib/*.so* 2>/dev/null || true

cat >"$root/gpu_suite" <<'START'
#!/usr/bin/env bash
# gpu_suite [PYTHON] [OUT]: everything that can be tried on this machine's GPU, with the torch of PYTHON.
here=$(dirname "$(readlink -f "$0")")
python=${1:-python3}
export UNIDLE_PYTHON="$python" UNIDLE_BIN="$here/bin" UNIDLE_LIB="$here/lib" UNIDLE_SOURCE="$here"
exec "$python" "$here/gpu/gpu_suite.py" "$here/bin/unidle" --python "$python" --out "${2:-gpu-suite}" --tests "$here/tests" --root "$here"
START
chmod +x "$root/gpu_suite"

mkdir -p "$(dirname "$file")"
tar -C "$stage" -czf "$file" unidle
echo "$file: $(($(stat -c %s "$file") / 1024 / 1024)) MB"
