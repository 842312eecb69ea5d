#!/usr/bin/env bash
# wheel.sh BUILD FOLDER: a wheel with the programs, the shim and the package `unidle`, for every Python from
# 3.9 on, and one with the C++ headers for workload libraries. The programs are in the package's folder
# `_installed`; the script `unidle` that pip installs becomes the one there.
set -euo pipefail
source=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
python=$source/.venv/bin/python
folder=$(realpath -m "$2")
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
version=$(sed -n 's/^__version__ = "\(.*\)"/\1/p' "$source/python/unidle/_version.py")
package=$stage/package
headers=$stage/headers
mkdir -p "$package" "$headers/unidle/_installed" "$folder"

(cd "$source/python" && find unidle \( -name '*.py' -o -name 'py.typed' \) -print0 | xargs -0 cp --parents -t "$package")
bash "$source/tools/relocatable.sh" "$1" "$package/unidle/_installed"
python3 "$source/tools/old_symbols.py" --check "$package"
install -Dm755 "$source/python/script/unidle" "$package/unidle-$version.data/scripts/unidle"
"$python" "$source/tools/wheel_metadata.py" "$package/unidle-$version.dist-info" "$version" "py3-none-manylinux_2_28_$(uname -m)"
if [ -d "$package/unidle/_installed/share/man" ]; then  # where `man` looks, given that the environment's bin/ is on PATH
  mkdir -p "$package/unidle-$version.data/data/share"
  mv "$package/unidle/_installed/share/man" "$package/unidle-$version.data/data/share/"
fi
if [ -d "$package/unidle/_installed/include" ]; then
  mv "$package/unidle/_installed/include" "$headers/unidle/_installed/"
  "$python" "$source/tools/wheel_metadata.py" "$headers/unidle_headers-$version.dist-info" "$version" py3-none-any --headers
  "$python" -m wheel pack "$headers" --dest-dir "$folder"
fi
"$python" -m wheel pack "$package" --dest-dir "$folder"
