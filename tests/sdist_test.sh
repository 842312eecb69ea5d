#!/usr/bin/env bash
# The source distribution is complete: `pip install` of it makes what the wheel has, but for the engine and
# the libraries of the machine.
subcommand=
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
python=$UNIDLE_SOURCE/.venv/bin/python
if ! "$python" -c 'import scikit_build_core, wheel' 2>/dev/null; then
  echo "skipped: the package scikit-build-core or wheel is not installed"
  exit 77
fi
# in_folder FOLDER CALL: calls the build backend as pip does
in_folder() {
  (cd "$1" && "$python" -c "from scikit_build_core.build import build_sdist, build_wheel; $2") >made 2>&1 ||
    fail "$2: $(tail -n 40 made)"
}

in_folder "$UNIDLE_SOURCE" "build_sdist('$PWD')"
tar xzf unidle-*.tar.gz && source=$(echo "$PWD"/unidle-*/) || fail "no source distribution"
if [ -e "$UNIDLE_SOURCE/.git" ]; then
  git -C "$UNIDLE_SOURCE" ls-files --cached --others --exclude-standard | grep -vE '^\.(ci|github)/' | sort >wanted
  (cd "$source" && find . \( -type f -o -type l \) ! -path ./PKG-INFO | sed 's,^\./,,' | sort) >got
  diff wanted got >out || fail "not the files of the repository: $(cat out)"
fi

# One that is made in an archive of git names the commit.
if [ -e "$UNIDLE_SOURCE/.git" ]; then
  mkdir archive dated
  git -C "$UNIDLE_SOURCE" archive HEAD | tar x -C archive
  in_folder archive "build_sdist('$PWD/dated')"
  tar xzOf dated/unidle-*.tar.gz --wildcards '*/cmake/commit.txt' >commit
  grep -qxE '[0-9a-f]+' commit || fail "the archive's commit: $(cat commit)"
fi

# Missing libraries are named by their packages, all at once.
PKG_CONFIG_LIBDIR=/nowhere cmake -S "$source" -B missing -G Ninja -DUNIDLE_TORCH=OFF -DUNIDLE_TESTS=OFF -DUNIDLE_BENCH=OFF \
  -DCMAKE_DISABLE_FIND_PACKAGE_fmt=ON >out 2>err && fail "configured without libraries"
for package in "apt install libfmt-dev" libxxhash-dev prometheus-cpp-dev; do has err "$package"; done
lacks err "libsqlite3-dev"

# Compiled as ./dev build does, so that the compiler's cache serves both.
CC=cc CXX=c++ in_folder "$source" "build_wheel('$PWD', {'build-dir': 'build', 'cmake.define.UNIDLE_WERROR': 'ON'})"
bash "$UNIDLE_SOURCE/tools/wheel.sh" "$(dirname "$UNIDLE_BIN")" "$PWD/packed" >out 2>&1 || fail "no wheel: $(cat out)"
# files FOLDER: the files of the wheel in it, without metadata, the engine's and the libraries brought along
files() {
  "$python" -m zipfile -l "$1"/unidle-*.whl | awk 'NR > 1 {print $1}' |
    grep -vE '\.dist-info/|/unidle-(train|export)|/libunidle_cuda|/lib/(uni|programs/)|/share/licenses/|/$' | sort
}
files . >ours
files packed >theirs
diff theirs ours >out || fail "not the files of the wheel: $(cat out)"

python3 -m venv elsewhere || { echo "skipped: python3 has no venv"; exit 77; }
elsewhere/bin/pip --quiet --disable-pip-version-check --no-input install --no-index --no-deps unidle-*.whl || fail "pip install"
rm -rf "$source"
unset UNIDLE_BIN UNIDLE_LIB UNIDLE_LIBRARY PYTHONPATH LD_LIBRARY_PATH
cat >loop.py <<'EOF'
import time, unidle

assert "x" not in unidle.Cache("cache")
with unidle.observe():
    for _ in range(40):
        time.sleep(0.002)
        unidle.step(samples=8)
EOF
elsewhere/bin/unidle run -o loop -- elsewhere/bin/python loop.py >out 2>err || fail "unidle run: $(cat err)"
python3 - <<'EOF' || fail "what it recorded"
import sqlite3

assert sqlite3.connect("loop/record.db").execute("select count(*) from steps").fetchone()[0] == 40
EOF
[ "$(elsewhere/bin/python -m unidle --version)" = "$(elsewhere/bin/unidle --version)" ] || fail "python -m unidle"
finish
