#!/usr/bin/env bash
# wheel.sh BUILD FOLDER: a wheel with the programs, the shim and the package `unidle`, for every Python from
# 3.9 on. The programs are in the package's folder `_installed`; the script `unidle` installed by pip executes
# them.
set -euo pipefail
source=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
folder=$(realpath -m "$2")
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
version=$(sed -n 's/^__version__ = "\(.*\)"/\1/p' "$source/python/unidle/_version.py")
glibc=$(getconf GNU_LIBC_VERSION | sed 's/^glibc //; s/\./_/')

(cd "$source/python" && find unidle \( -name '*.py' -o -name 'py.typed' \) -print0 | xargs -0 cp --parents -t "$stage")
bash "$source/tools/relocatable.sh" "$1" "$stage/unidle/_installed"
mkdir -p "$stage/unidle-$version.dist-info" "$folder"
cat >"$stage/unidle-$version.dist-info/METADATA" <<EOF
Metadata-Version: 2.1
Name: unidle
Version: $version
Summary: Sees why a training run leaves its device idle, fixes it, and proves the gain
Requires-Python: >=3.9
EOF
cat >"$stage/unidle-$version.dist-info/WHEEL" <<EOF
Wheel-Version: 1.0
Generator: unidle
Root-Is-Purelib: false
Tag: py3-none-manylinux_${glibc}_$(uname -m)
EOF
cat >"$stage/unidle-$version.dist-info/entry_points.txt" <<EOF
[console_scripts]
unidle = unidle._program:main
EOF
"$source/.venv/bin/python" -m wheel pack "$stage" --dest-dir "$folder"
