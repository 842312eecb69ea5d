#!/usr/bin/env bash
# relocatable.sh BUILD ROOT: puts the programs of a build into ROOT/{bin,include,lib,libexec,share}, with the
# shim and all libraries that they need except those that every machine with PyTorch has, so that they run
# wherever ROOT is and glibc is 2.28 or later. LibTorch is not included: unidle-train uses that of the given
# Python, which must have the version with which it was built.
set -euo pipefail
source=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=$(readlink -f "$1")
root=$2
mkdir -p "$root"/{bin,lib/programs,libexec,share/unidle/python}

cp "$build/bin/unidle" "$root/bin/"
for library in libunidle.so libunidle_probe.so _unidle_light.abi3.so libunidle_cupti.so libunidle_cuda.so; do
  if [ -e "$build/lib/$library" ]; then cp "$build/lib/$library" "$root/lib/"; fi
done
(cd "$source/python" && find shim engine trackers -name '*.py' -print0 | xargs -0 cp --parents -t "$root/share/unidle/python")

if [ -d "$build/share/man" ]; then cp -r "$build/share/man" "$root/share/"; fi

# Except the libraries of the C library and of the compiler, and those of torch.
libraries_of() {
  ldd "$1" | awk '$2 == "=>" && $3 ~ /^\// {print $3}' |
    grep -vE '/(libc|libm|libdl|librt|libpthread|libutil|libgcc_s|libgomp|ld-linux[^/]*)\.so|/torch/lib/|/nvidia/|/libcuda'
}
programs=("$root/bin/unidle" "$build/lib/libunidle.so")
if [ -x "$build/bin/unidle-train" ]; then
  cp "$build/bin/unidle-train" "$root/libexec/"
  mkdir -p "$root/include"  # the headers for workload libraries
  (cd "$source/src" && find unidle/{base,data,traits,train} -name '*.h' ! -path '*/testing/*' -print0 |
    xargs -0 cp --parents -t "$root/include")
  programs+=("$root/libexec/unidle-train")
  cat >"$root/bin/unidle-train" <<'START'
#!/usr/bin/env bash
# Starts the engine with the LibTorch of a Python that has torch: that of $UNIDLE_PYTHON, the one beside this
# program where both were installed by pip, or python3's. Other versions of LibTorch have other classes.
here=$(dirname "$(readlink -f "$0")")
python=${UNIDLE_PYTHON:-python3}
torch=$(readlink -f "$here/../../../torch")
if [ -n "${UNIDLE_PYTHON:-}" ] || [ ! -d "$torch/lib" ]; then
  torch=$("$python" -c "import importlib.util as u; s = u.find_spec('torch'); print(s.submodule_search_locations[0] if s else '')" 2>/dev/null)
fi
if [ -z "$torch" ]; then
  echo "unidle-train: $python has no torch; set UNIDLE_PYTHON to one that has" >&2
  exit 3
fi
version=$(sed -n "s/^__version__ *= *'\([0-9]*\.[0-9]*\).*/\1/p" "$torch/version.py")
if [ "$version" != "@torch@" ]; then
  echo "unidle-train: serves torch @torch@; $torch has version $version" >&2
  exit 3
fi
export LD_LIBRARY_PATH="$torch/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
exec "$here/../libexec/unidle-train" "$@"
START
  serves=$("$build/bin/unidle-train" --version | sed -n 's/^torch \([0-9]*\.[0-9]*\).*/\1/p')
  sed -i "s/@torch@/$serves/g" "$root/bin/unidle-train"
  chmod +x "$root/bin/unidle-train"
fi
for program in "${programs[@]}"; do
  libraries_of "$program" | while read -r library; do cp -nL "$library" "$root/lib/"; done
done
# Only for the programs: Python has its own, which libunidle.so uses as well.
mv "$root/lib/libstdc++.so.6" "$root/lib/programs/"
# The licences of what was copied, as the distribution states them.
for library in "$root"/lib/{,programs/}*.so.[0-9]*; do
  package=$(dpkg-query -S "*/$(basename "$library")" 2>/dev/null | sed -n '1s/:.*//p')
  if [ -e "/usr/share/doc/$package/copyright" ]; then
    install -Dm644 "/usr/share/doc/$package/copyright" "$root/share/licenses/$package/copyright"
  else
    echo "relocatable: no copyright file of $(basename "$library")" >&2
  fi
done
strip --strip-unneeded "$root"/bin/unidle "$root"/libexec/* "$root"/lib/{,programs/}*.so* 2>/dev/null || true
find "$root/lib" -type f -name '*.so*' -exec chmod 644 {} +
python3 "$source/tools/old_symbols.py" "$root"
