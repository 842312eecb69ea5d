#!/usr/bin/env bash
# The wheel of a build, installed by pip without access to the build, is the complete product.
subcommand=
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
if ! "$UNIDLE_SOURCE/.venv/bin/python" -c 'import wheel' 2>/dev/null; then
  echo "skipped: the package wheel is not installed"
  exit 77
fi
build=$(dirname "$UNIDLE_BIN")
bash "$UNIDLE_SOURCE/tools/wheel.sh" "$build" "$PWD" >packed || fail "no wheel: $(cat packed)"
[ "$(stat -c %s unidle-*.whl)" -lt $((60 << 20)) ] || fail "the wheel has more than 60 MB"
python3 -m venv elsewhere || { echo "skipped: python3 has no venv"; exit 77; }
elsewhere/bin/pip install --quiet --disable-pip-version-check --no-index --no-deps unidle-*.whl || fail "pip install"
unset UNIDLE_BIN UNIDLE_LIB UNIDLE_LIBRARY PYTHONPATH LD_LIBRARY_PATH
unidle=$PWD/elsewhere/bin/unidle

[ "$("$unidle" --version)" = "$("$build/bin/unidle" --version)" ] || fail "unidle --version"
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

# The package finds its library, and the program, without help.
elsewhere/bin/python - <<'EOF' || fail "the package of a wheel"
import csv, unidle

with open("rows.csv", "w", newline="") as file:
    csv.writer(file).writerows([["a", "b"], [1, 2], [3, 4]])
source = unidle.data.table("rows.csv")
assert len(source) == 2, len(source)
assert "x" not in unidle.Cache("cache")
assert unidle.report("loop").exists()
EOF

# The engine uses the torch beside it.
if [ -x "$build/bin/unidle-train" ]; then
  ln -s "$("$UNIDLE_SOURCE/.venv/bin/python" -c 'import torch, os; print(os.path.dirname(torch.__file__))')" \
    "$(echo elsewhere/lib/python3*/site-packages)/torch"
  env -u UNIDLE_PYTHON "$unidle" train --help >out 2>err || fail "unidle train: $(cat err)"
  has out "Trains a workload"

  # A workload library is built with the wheel's own files.
  awk '$0 == "```cpp" {inside = 1; next} /^```/ {inside = 0} inside' "$UNIDLE_SOURCE/docs/adding-a-workload.md" >mine.cpp
  awk '$0 == "```yaml" {inside = 1; next} /^```/ {inside = 0} inside' "$UNIDLE_SOURCE/docs/adding-a-workload.md" >mine.yaml
  flags=$(env -u UNIDLE_PYTHON "$unidle" train --plugin-flags) || fail "--plugin-flags of a wheel"
  # shellcheck disable=SC2086
  c++ $flags mine.cpp -o libmine.so >compiled 2>&1 || fail "with a wheel: $(cat compiled)"
  [ "${flags#*"$UNIDLE_SOURCE/src"}" = "$flags" ] || fail "a wheel's flags name the sources: $flags"
  make_houses 500
  env -u UNIDLE_PYTHON "$unidle" train --plugin ./libmine.so mine.yaml train.samples=6400 >out 2>err || fail "a library: $(cat err)"
  has out "rmse"
fi

# pip removes everything again.
elsewhere/bin/pip uninstall --quiet --yes unidle || fail "pip uninstall"
[ -z "$(find elsewhere -path '*unidle*' ! -name '*.pyc' -type f)" ] || fail "files are left: $(find elsewhere -path '*unidle*' -type f)"
finish
