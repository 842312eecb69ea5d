#!/usr/bin/env bash
# The wheel of a build, installed by pip without access to the build, is the complete product.
subcommand=
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
if ! "$UNIDLE_SOURCE/.venv/bin/python" -c 'import wheel' 2>/dev/null; then
  echo "skipped: the package wheel is not installed"
  exit 77
fi
build=$(dirname "$UNIDLE_BIN")
bash "$UNIDLE_SOURCE/tools/wheel.sh" "$build" "$PWD" >packed 2>&1 || fail "no wheel: $(cat packed)"
lacks packed "no copyright file"
wheel=$(echo unidle-*.whl)
[ "$(stat -c %s "$wheel")" -lt $((15 << 20)) ] || fail "the wheel has more than 15 MB"
python3 -m venv elsewhere || { echo "skipped: python3 has no venv"; exit 77; }
pip=(elsewhere/bin/pip --quiet --disable-pip-version-check --no-input)
"${pip[@]}" install --no-index --no-deps "$wheel" || fail "pip install"
site=$(echo elsewhere/lib/python3*/site-packages)
unset UNIDLE_BIN UNIDLE_LIB UNIDLE_LIBRARY PYTHONPATH LD_LIBRARY_PATH
unidle=$PWD/elsewhere/bin/unidle
version=$("$build/bin/unidle" --version)

# Older distributions: no file asks for newer versions than its tag says, and pip takes it for that tag.
check "the check of versions" python3 "$UNIDLE_SOURCE/tools/old_symbols.py" --self-test
python3 "$UNIDLE_SOURCE/tools/old_symbols.py" --check "$site/unidle" >out || fail "too new: $(cat out)"
"${pip[@]}" download --no-deps --no-index --find-links . --only-binary :all: --platform "manylinux_2_28_$(uname -m)" -d taken unidle ||
  fail "pip does not take the wheel for glibc 2.28"
if [ -x "$UNIDLE_SOURCE/.venv/bin/auditwheel" ]; then
  "$UNIDLE_SOURCE/.venv/bin/auditwheel" show "$wheel" | tr '\n' ' ' >out
  has out "manylinux_2_28_"
fi
find "$site/unidle" -name '*.h' | grep . && fail "headers in the wheel"

# What is shown of it.
"${pip[@]}" show -v unidle >out || fail "pip show"
has out "Topic :: Scientific/Engineering :: Artificial Intelligence"
info=$(echo "$site"/unidle-*.dist-info)
has "$info/METADATA" "License-Expression: Apache-2.0"
lacks "$info/METADATA" "](docs/"
cmp -s "$info/licenses/LICENSE" "$UNIDLE_SOURCE/LICENSE" || fail "no licence in the wheel"
[ -n "$(find "$site/unidle/_installed/share/licenses" -name copyright)" ] || fail "no licences of the libraries in the wheel"

check "the check of manual pages" python3 "$UNIDLE_SOURCE/tools/man_pages.py" --self-test
[ -s elsewhere/share/man/man1/unidle-run.1 ] || fail "no manual page of unidle run"
if command -v man >/dev/null && command -v groff >/dev/null; then
  for page in elsewhere/share/man/man1/*.1; do
    man --warnings -l "$page" >out 2>err || fail "man $page"
    [ ! -s err ] || fail "$page: $(cat err)"
  done
fi

[ "$("$unidle" --version)" = "$version" ] || fail "unidle --version"
[ "$(elsewhere/bin/python -m unidle --version)" = "$version" ] || fail "python -m unidle"
# In a folder that is less deep than an environment, and may be read only.
short=$(mktemp -d)
"${pip[@]}" install --no-index --no-deps --target "$short" "$wheel" || fail "pip install --target"
[ "$(PYTHONPATH=$short elsewhere/bin/python -m unidle --version)" = "$version" ] || fail "python -m unidle in a --target"
(cd / && PYTHONPATH=$short python3 -c 'import unidle; unidle._native.library()') || fail "the library in a --target"
[ "$("$short/bin/unidle" --version)" = "$version" ] || fail "the script in a --target"
rm -rf "$short"
# Where the first line of a script cannot name the Python.
long="a b/$(printf 'l%.0s' {1..150})/$(printf 'o%.0s' {1..150})"
mkdir -p "$long"
python3 -m venv "$long" || fail "python3 -m venv"
"$long/bin/python" -m pip --quiet --disable-pip-version-check install --no-index --no-deps "$wheel" || fail "pip install in a long path"
[ "$("$long/bin/unidle" --version)" = "$version" ] || fail "the script in a long path with a space"
# Where no Python looks for packages; by a link, as pipx and uv make them; by its name; the last of two.
"${pip[@]}" install --no-index --no-deps --ignore-installed --prefix "$PWD/prefix" "$wheel" || fail "pip install --prefix"
ln -s prefix/bin/unidle linked
[ "$(./linked --version)" = "$version" ] || fail "a link to the script"
mkdir apart
mv prefix/bin/unidle apart/script
ln -s ../../apart/script prefix/bin/unidle
[ "$(prefix/bin/unidle --version)" = "$version" ] || fail "a script that is a link itself"
rm prefix/bin/unidle
mv apart/script prefix/bin/unidle
[ "$(cd prefix/bin && sh unidle --version)" = "$version" ] || fail "the script, named without a folder"
newest=prefix/lib/python3.99/site-packages/unidle/_installed/bin
mkdir -p "$newest"
printf '#!/bin/sh\necho "the newest $1"' >"$newest/unidle"
chmod +x "$newest/unidle"
touch -d tomorrow "$newest"
[ "$(prefix/bin/unidle "a  b")" = "the newest a  b" ] || fail "not the package that was installed last"
cp prefix/bin/unidle copied
PATH=$PWD/nowhere ./copied --version >out 2>err && fail "the script without its package"
has err "neither beside"
[ "$(PATH=$PWD/elsewhere/bin:$PATH ./copied --version)" = "$version" ] || fail "the script by the python3 on PATH"
# The demo trains with the Python of the environment if that has torch, otherwise with the one on PATH.
PATH=$PWD/elsewhere/bin:/usr/bin:/bin "$unidle" demo >out 2>err && fail "a demo without torch"
has err "unidle: python3: has no torch"
mkdir "$site/torch"
echo 'raise ImportError("broken")' >"$site/torch/__init__.py"
"$unidle" demo >out 2>err && fail "a demo with a broken torch"
has err "$PWD/elsewhere/bin/python3"
rm -r "$site/torch"

cat >loop.py <<'EOF'
import time, unidle

with unidle.observe():
    for _ in range(40):
        time.sleep(0.002)
        unidle.step(samples=8)
EOF
"$unidle" run -o loop -- elsewhere/bin/python loop.py >out 2>err || fail "unidle run: $(cat err)"
"$unidle" diagnose loop --format json >told.json || [ $? = 1 ] || fail "unidle diagnose"
elsewhere/bin/python - <<'EOF' || fail "what a wheel recorded"
import json, sqlite3

assert sqlite3.connect("loop/record.db").execute("select count(*) from steps").fetchone()[0] == 40
EOF

# What sends to trackers is there; the trackers' packages are not.
"$unidle" report loop --tracker wandb >out 2>err
has err "No module named 'wandb'"

# The package finds its library, and the program, without help. Python keeps its own libraries.
elsewhere/bin/python - <<'EOF' || fail "the package of a wheel"
import csv, unidle

with open("rows.csv", "w", newline="") as file:
    csv.writer(file).writerows([["a", "b"], [1, 2], [3, 4]])
source = unidle.data.table("rows.csv")
assert len(source) == 2, len(source)
assert "x" not in unidle.Cache("cache")
assert unidle.report("loop").exists()
mapped = {line.split()[-1].rpartition("/")[2] for line in open("/proc/self/maps") if "/_installed/" in line}
assert "libunidle.so" in mapped, mapped
assert not [name for name in mapped if name.startswith("lib") and "unidle" not in name], mapped
EOF

# The engine uses the torch beside it, of its own version.
if [ -x "$build/bin/unidle-train" ]; then
  torch=$("$UNIDLE_SOURCE/.venv/bin/python" -c 'import torch, os; print(os.path.dirname(torch.__file__))')
  mkdir -p "$site/torch/lib"
  echo "__version__ = '1.0.0'" >"$site/torch/version.py"
  env -u UNIDLE_PYTHON "$unidle" train --help >out 2>err
  [ $? = 3 ] || fail "unidle train with another torch: $(cat out err)"
  has err "has version 1.0"
  rm -r "$site/torch"
  ln -s "$torch" "$site/torch"
  env -u UNIDLE_PYTHON "$unidle" train --help >out 2>err || fail "unidle train: $(cat err)"
  has out "Train a workload"

  # A workload library is built with the headers that the extra `plugins` installs.
  env -u UNIDLE_PYTHON "$unidle" train --plugin-flags >out 2>err && fail "flags without headers"
  has err "unidle[plugins]"
  "${pip[@]}" install --no-index --find-links . 'unidle[plugins]' || fail "pip install 'unidle[plugins]'"
  awk '$0 == "```cpp" {inside = 1; next} /^```/ {inside = 0} inside' "$UNIDLE_SOURCE/docs/adding-a-workload.md" >mine.cpp
  awk '$0 == "```yaml" {inside = 1; next} /^```/ {inside = 0} inside' "$UNIDLE_SOURCE/docs/adding-a-workload.md" >mine.yaml
  flags=$(env -u UNIDLE_PYTHON "$unidle" train --plugin-flags) || fail "--plugin-flags of a wheel"
  # shellcheck disable=SC2086
  c++ $flags mine.cpp -o libmine.so >compiled 2>&1 || fail "with a wheel: $(cat compiled)"
  [ "${flags#*"$UNIDLE_SOURCE/src"}" = "$flags" ] || fail "a wheel's flags name the sources: $flags"
  make_houses 500
  env -u UNIDLE_PYTHON "$unidle" train --plugin ./libmine.so mine.yaml train.samples=6400 >out 2>err || fail "a library: $(cat err)"
  has out "rmse"
  "${pip[@]}" uninstall --yes unidle-headers || fail "pip uninstall unidle-headers"
fi

# The same files as a Debian package, for the Python of the system.
if command -v dpkg-deb >/dev/null; then
  bash "$UNIDLE_SOURCE/tools/deb.sh" "$wheel" "$PWD" >packed 2>&1 || fail "no Debian package: $(cat packed)"
  deb=$(echo unidle_*.deb)
  [ "$(dpkg-deb --field "$deb" Package Depends | tr '\n' ' ')" = "Package: unidle Depends: libc6 (>= 2.28), python3 (>= 3.9) " ] ||
    fail "the package's fields: $(dpkg-deb --field "$deb")"
  if command -v lintian >/dev/null; then
    lintian "$deb" >out 2>err || fail "lintian: $(cat out err)"
    [ ! -s out ] || fail "lintian: $(cat out)"
  fi
  before=0
  for given in 0.0.9 0.1.0.dev1+rc1 0.1.0a1.dev2 0.1.0a1 0.1.0b2 0.1.0rc1 0.1.0 0.1.0+local 0.1.0.post1; do
    is=$(bash "$UNIDLE_SOURCE/tools/deb.sh" --version "$given")
    dpkg --compare-versions "$before" lt "$is" || fail "$given as $is is not after $before"
    before=$is
  done
  [ "$(bash "$UNIDLE_SOURCE/tools/deb.sh" --version 0.1.0rc1+local.dev-b1)" = "0.1.0~rc1+local.dev.b1" ] || fail "a local version"
  mkdir -p machine/var/lib/dpkg/{info,updates,triggers}
  : >machine/var/lib/dpkg/status
  packages=(env "PATH=$PATH:/usr/sbin:/sbin" dpkg --root="$PWD/machine" --force-depends --force-not-root --force-script-chrootless --log=/dev/null)
  "${packages[@]}" --install "$deb" >out 2>err || fail "dpkg --install: $(cat out err)"
  [ "$(machine/usr/bin/unidle --version)" = "$version" ] || fail "the command of the Debian package"
  (cd / && PYTHONPATH=$OLDPWD/machine/usr/lib/python3/dist-packages python3 -c 'import unidle; unidle._native.library()') ||
    fail "the Python package of the Debian package"
  machine/usr/bin/unidle run -o debian -- elsewhere/bin/python loop.py >out 2>err || fail "run of the Debian package: $(cat err)"
  for file in share/man/man1/unidle-run.1.gz share/bash-completion/completions/unidle share/doc/unidle/copyright; do
    [ -s "machine/usr/$file" ] || fail "the Debian package lacks /usr/$file"
  done
  # Compiled, with the names that its files have in the machine; also where somebody had removed them.
  rm -r machine/usr/lib/python3/dist-packages/unidle
  "${packages[@]}" --install "$deb" >out 2>err || fail "dpkg --install again: $(cat out err)"
  compiled=$(find machine/usr -path '*/shim/*.pyc')
  [ -n "$compiled" ] || fail "the Debian package's Python code is not compiled"
  grep -qF "/usr/lib/python3/dist-packages/unidle/_installed/share/unidle/python/shim/" $compiled || fail "names of files in $compiled"
  grep -rlF "$PWD/machine" machine/usr && fail "names of the folder machine"
  "${packages[@]}" --purge unidle >out 2>err || fail "dpkg --purge: $(cat out err)"
  [ -z "$(find machine/usr -type f 2>/dev/null)" ] || fail "files are left: $(find machine/usr -type f)"
  "${packages[@]}" --install "$deb" >out 2>err || fail "dpkg --install after --purge: $(cat out err)"
  rm -r machine/usr/lib/python3/dist-packages/unidle
  "${packages[@]}" --purge unidle >out 2>err || fail "dpkg --purge without its files: $(cat out err)"
  [ -z "$(find machine/usr -type f 2>/dev/null)" ] || fail "files are left: $(find machine/usr -type f)"
fi

# pip removes everything again.
"${pip[@]}" uninstall --yes unidle || fail "pip uninstall"
[ -z "$(find elsewhere -path '*unidle*' ! -name '*.pyc' -type f)" ] || fail "files are left: $(find elsewhere -path '*unidle*' -type f)"
finish
