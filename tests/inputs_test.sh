#!/usr/bin/env bash
# Files from other programs: not regular files, private, shared, endless, deep, or made to control a terminal.
subcommand=
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

escape=$'\x1b' c1=$'\xc2\x9b' bidi=$'\xe2\x80\xae'
# clean FILE...: nothing in them that a terminal would interpret.
clean() {
  local sign file
  for file in "$@"; do
    for sign in "$escape" "$c1" "$bidi" $'\a' $'\x9b]' $'\r'; do
      ! LC_ALL=C grep -qF -- "$sign" "$file" || fail "$file steers the terminal: $(cat -v "$file")"
    done
  done
}

# Anything that is not a file is reported in one line, wherever a file is named, and never waited for.
mkfifo pipe pipe.yaml pipe.log
mkdir folder.yaml
for what in pipe.yaml folder.yaml /dev/zero; do
  refused knobs recognize "$what"
  refused optimize "$what"
  refused optimize "$what" --undo
  refused optimize "$what" --benchmark -- true '{config}'
  refused run --apply "$what" -- true
  refused diagnose --policy "$what" pipe.log
done
for what in pipe.log /dev/zero; do
  refused diagnose "$what"
  refused trace "$what"
  refused compare "$what" pipe
  refused report "$what"
done
refused diagnose pipe.log pipe
refused compare pipe.yaml pipe.yaml
echo "Epoch 1 loss 0.5" >train.log
refused diagnose <(cat train.log)
has err "write the stream to one first"
refused knobs recognize <(echo "num_workers: 0")
"$unidle" knobs recognize /dev/stdin <<<"num_workers: 0" >out 2>err || true
if [ -x "$UNIDLE_BIN/unidle-train" ]; then
  refused train pipe.yaml
  refused train folder.yaml
fi

# Unusable paths: a circle of links, a name too long, a folder without permission.
ln -s circle.yaml circle.yaml
ln -s circle circle
long=$(printf 'a%.0s' $(seq 300))
unseen() {
  refused compare "$1" "$1"
  refused compare "$1" record
  refused trace "$1"
  refused trace "$1" -o out.json
  refused diagnose "$1"
  refused diagnose --policy "$1" record
  refused report "$1"
  refused report record -o "$1/page.html"
  refused monitor "$1" --seconds 0.1
  refused knobs recognize "$1.yaml"
  refused optimize "$1.yaml"
  refused optimize "$1.yaml" --undo
  refused optimize "$1.yaml" --benchmark -- true '{config}'
  refused run --apply "$1" -- true
  UNIDLE_HOME=$1 refused runs
  UNIDLE_HOME=$1 refused diagnose
}
expect 0 run -o record -- true
for path in circle "$long"; do
  unseen "$path"
  has err "$path"
  lacks err "filesystem error"
done
refused compare circle circle
has err "links lead in a circle"
mkdir closed
cp -r record closed/record
echo "num_workers: 0" >closed/record.yaml
chmod 700 closed
chmod 000 closed
if [ "$(id -u)" != 0 ]; then
  unseen closed/record
  has err "Permission denied"
else # a user who may enter every folder becomes another user for this
  chmod 755 .
  printf '#!/bin/sh\nexec setpriv --reuid=65534 --regid=65534 --clear-groups "%s" "$@"\n' "$unidle" >as_nobody
  chmod 755 as_nobody
  if ./as_nobody --version >/dev/null 2>&1; then
    unidle=./as_nobody unseen closed/record
    has err "Permission denied"
  fi
fi
chmod 700 closed

# The current folder, or that of temporary files, does not exist.
mkdir gone
(cd gone && rmdir ../gone && "$unidle" compare "$folder/record" ../record >../out 2>../err)
[ $? = 2 ] || fail "compare in a folder that is gone: $(cat out err)"
lacks err "filesystem error"
TMPDIR=$folder/nowhere "$unidle" check --format json >out 2>err
[ $? -le 1 ] || fail "check without a folder for temporary files: $(cat err)" # 1: this machine has problems

# Files made from a private file are private; a link stays a link; other names and read-only files are
# reported.
private() { [ "$(stat -c %a "$1")" = 600 ] || fail "$1 has mode $(stat -c %a "$1")"; }
printf 'num_workers: 0 # here\nbatch_size: 8\n' >secret.yaml
chmod 600 secret.yaml
expect 0 optimize secret.yaml
private secret.optimized.yaml
ln -s secret.yaml link.yaml
expect 0 optimize link.yaml --in-place
[ -L link.yaml ] || fail "the link became a file"
private secret.yaml
private link.bak.yaml
has secret.yaml "# here"
lacks secret.yaml "num_workers: 0"
expect 0 optimize link.yaml --undo
[ -L link.yaml ] || fail "undoing made the link a file"
private secret.yaml
private link.undone.yaml
has secret.yaml "num_workers: 0"
ln secret.yaml second.yaml
refused optimize secret.yaml --in-place
has err "2 names"
rm second.yaml
chmod 400 secret.yaml
refused optimize secret.yaml --in-place
has err "read-only"
has secret.yaml "num_workers: 0"
[ ! -e secret.bak.yaml ] || fail "a backup of what was not changed"

# Deep, endless and large configurations end with a line.
{ printf a; printf '.a%.0s' $(seq 50000); echo ' = 1'; } >deep.toml
refused optimize deep.toml
{ echo 'a0: &a0 []'; for i in $(seq 1 30); do echo "a$i: &a$i [*a$((i - 1)), *a$((i - 1)), *a$((i - 1))]"; done; } >laughs.yaml
refused optimize laughs.yaml
printf 'workload: superres\nbatch.size: 4\nbatch.accumulation: 1000000000000\n' >accumulation.yaml
expect 0 optimize accumulation.yaml --dry-run

# Names and values do not control the terminal, and JSON escapes them.
evil="k${escape}[2J${escape}]0;t"$'\a'"${c1}31m${bidi}"$'\r\x9b'"]x"
printf '{"traceEvents":[{"ph":"X","cat":"kernel","name":"%s","pid":0,"tid":7,"ts":10,"dur":500,"args":{"device":0}}]}' \
  "k\\u001b[2J\\u0007\\u009b31m\\u202e\\nunidle: all is well" >evil.json
expect 0 trace evil.json
clean out err
[ "$(grep -c '^unidle: all is well' out)" = 0 ] || fail "a name of several lines writes lines of its own"
expect 0 trace evil.json --format json
clean out err
has out '\u001b[2J'
has out '\u202e'
printf 'Epoch 1/3 loss 0.5\nTraceback (most recent call last):\n  File "%s.py", line 1\nValueError: %s\n' "$evil" "$evil" >evil.log
expect 1 diagnose evil.log
clean out err
expect 1 diagnose evil.log --format json
clean out err
printf 'num_workers: 0\n"key%s": "%s"\nname: "%s"\n' '\u001b[2J' '\u001b]0;t\u0007\u009b\u202e' 'a\rb' >evil.yaml
expect 0 knobs recognize evil.yaml --all
clean out err
expect 0 knobs recognize evil.yaml --all --format json
clean out err
expect 0 optimize evil.yaml --dry-run
clean out err
for command in "knobs recognize" diagnose trace optimize report "compare evil.yaml" "run --apply" "$evil"; do
  # shellcheck disable=SC2086
  refused $command "no$evil"
  clean err
done
UNIDLE_LOG=info "$unidle" run --name "r$escape" -- sh -c 'exit 3' "$evil" >out 2>err
clean err
expect 0 runs
clean out err
expect 0 runs --format json
clean out err
"$unidle" diagnose >out 2>err
clean out err

finish
