# Sourced by whole-program tests: creates and enters a temporary folder, and counts failed expectations.
#   subcommand=check; . "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# The last expect leaves its output in the files out and err. A test ends with `finish`.
set -u
folder=$(mktemp -d)
children=() # ids of programs that end with the test
trap 'for id in "${children[@]}"; do kill "$id"; wait "$id"; done 2>/dev/null; rm -rf "$folder"' EXIT
cd "$folder" || exit 1
export UNIDLE_HOME="$folder/.unidle" NO_COLOR=1
export unidle="$UNIDLE_BIN/unidle"
failures=0

fail() {
  echo "FAIL: $1" >&2
  failures=$((failures + 1))
}

# check DESCRIPTION COMMAND...: it succeeds. Its output is in out.txt and err.txt.
check() {
  local what=$1
  shift
  "$@" >/dev/null 2>&1 || fail "$what: $(tail -n 20 out.txt err.txt 2>/dev/null)"
}

# all_chinese FILE: it is in Chinese. Names, paths, knobs, numbers, commands and code are the same in every
# language; two other English words in a row are a sentence.
all_chinese() {
  local found
  found=$(python3 - "$1" <<'PY'
import re
import sys

# What stays English: code, commands, options, words with anything but letters, names of devices and products.
KEPT = re.compile(
    r"`[^`]*`|@\S.*|unidle( -- \S.*|( [a-z-]+)+)?|(python3?|nvidia-smi|sudo|apt|pip) .*|https?://\S+|\S*[^\sA-Za-z,.:;()]\S*"
)
SENTENCE = re.compile(r"\b[A-Za-z]?[a-z]+ [a-z]{2,}\b|\b(the|of|is|are|was|were|not|for|from|with|its|than)\b")
text = open(sys.argv[1], encoding="utf-8").read()
for number, line in enumerate(text.split("\n"), 1):
    rest = re.sub(r"[^\x00-\x7f]+", " | ", line)
    if SENTENCE.search(KEPT.sub("|", rest)):
        print(f"{number}: {line}")
if not re.search(r"[\u4e00-\u9fff]", text):
    print("no Chinese: " + text[:300])
PY
  )
  [ -z "$found" ] || fail "English in a Chinese answer: $found"
}

# no_chinese FILE: it has no Chinese character.
no_chinese() {
  ! LC_ALL=C grep -nE $'[\xe3-\xe9][\x80-\xbf][\x80-\xbf]|\xef\xbc' "$1" || fail "Chinese in an English answer"
}

# at_most_columns WIDTH FILE: no line is wider on a terminal, where Chinese characters take two columns.
at_most_columns() {
  python3 - "$@" <<'PY' || fail "wider than $1 columns: $(cat "$2")"
import sys
import unicodedata

width, lines = int(sys.argv[1]), open(sys.argv[2], encoding="utf-8").read().split("\n")
sys.exit(any(sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in line) > width for line in lines))
PY
}

# needs_engine: skips the test if unidle-train was not built, for lack of torch.
needs_engine() {
  [ -x "$UNIDLE_BIN/unidle-train" ] || {
    echo "skipped: the engine was not built"
    exit 77
  }
}

# needs_torch: skips the test without a Python that has torch; $python is one.
needs_torch() {
  python=${UNIDLE_PYTHON:-${UNIDLE_SOURCE:?}/.venv/bin/python}
  command -v "$python" >/dev/null || python=python3
  if ! "$python" -c 'import importlib.util, sys; sys.exit(not importlib.util.find_spec("torch"))' 2>/dev/null; then
    echo "skipped: $python has no torch"
    exit 77
  fi
}

# needs_gpu: skips the test without an NVIDIA GPU that $python, which has torch, can use.
needs_gpu() {
  if ! ls /dev/nvidia[0-9]* /dev/dxg 2>/dev/null | grep -q .; then
    echo "skipped: no NVIDIA GPU here"
    exit 77
  fi
  needs_torch
  if ! "$python" -c 'import sys, torch; sys.exit(not torch.cuda.is_available())' 2>/dev/null; then
    echo "skipped: the torch of $python cannot use the GPU"
    exit 77
  fi
}

# needs_pretend_gpu LIBRARY: skips the test if the CUDA runtime that computes nothing, or LIBRARY, was not
# built.
needs_pretend_gpu() {
  local library
  for library in "$UNIDLE_LIB/libunidle_fake_cuda.so" "$1"; do
    [ -e "$library" ] || {
      echo "skipped: there is no $(basename "$library")"
      exit 77
    }
  done
}

# make_houses ROWS: houses.csv with price = 3 rooms - 2 age + 5, which any model can learn.
make_houses() {
  awk -v rows="$1" 'BEGIN {
    srand(7); print "rooms,age,price"
    for (i = 0; i < rows; i++) { r = rand() * 6; a = rand() * 3; printf "%.4f,%.4f,%.4f\n", r, a, 3 * r - 2 * a + 5 }
  }' >houses.csv
}

# expect CODE ARGUMENT...: runs unidle with $subcommand, if set, and these arguments; checks the exit code.
expect() {
  local code=$1
  shift
  "$unidle" ${subcommand:-} "$@" >out 2>err
  local got=$?
  [ "$got" = "$code" ] || fail "unidle ${subcommand:-} $*: exit code $got, expected $code: $(cat out err)"
}

# has FILE TEXT, lacks FILE TEXT
has() { grep -qF -- "$2" "$1" || fail "$1 lacks '$2': $(cat "$1")"; }
lacks() { ! grep -qF -- "$2" "$1" || fail "$1 has '$2': $(cat "$1")"; }

# refused ARGUMENT...: exit code 2, one line on stderr, nothing on stdout.
refused() {
  expect 2 "$@"
  [ "$(wc -l <err)" = 1 ] || fail "$*: more than one line: $(cat err)"
  [ ! -s out ] || fail "$*: something on stdout"
}

finish() {
  [ "$failures" = 0 ] && echo "all good"
  exit $((failures > 0))
}
