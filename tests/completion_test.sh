#!/usr/bin/env bash
# `unidle completion`: what a shell offers for `unidle train`, according to unidle-train; and one version for
# all.
subcommand=
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

version=$(sed -n 's/^__version__ = "\(.*\)"/\1/p' "$UNIDLE_SOURCE/python/unidle/_version.py")
expect 0 --version
[ "$(head -n 1 out)" = "unidle $version" ] || fail "unidle --version: $(cat out)"
grep -qE '^commit ([0-9a-f]{7,}(-dirty)?|unknown), ' out || fail "unidle --version names no commit: $(cat out)"
grep -qx "version: $version" "$UNIDLE_SOURCE/CITATION.cff" || fail "CITATION.cff has another version than $version"
grep -q "^## $version" "$UNIDLE_SOURCE/CHANGELOG.md" || fail "CHANGELOG.md lacks $version"

# An archive without a repository knows its commit from git.
mkdir -p archive/cmake
echo 0123456789ab >archive/cmake/commit.txt
cmake -DSOURCE="$PWD/archive" -DGENERATED="$PWD/commit.cpp" -DBUILD=text -P "$UNIDLE_SOURCE/cmake/FindCommit.cmake" || fail "no commit"
has commit.cpp '"commit 0123456789ab, text"'
cp "$UNIDLE_SOURCE/cmake/commit.txt" archive/cmake/
cmake -DSOURCE="$PWD/archive" -DGENERATED="$PWD/commit.cpp" -DBUILD=text -P "$UNIDLE_SOURCE/cmake/FindCommit.cmake" || fail "no commit"
has commit.cpp '"commit unknown, text"'

needs_engine
expect 0 train --version
[ "$(head -n 1 out)" = "unidle $version" ] || fail "unidle train --version: $(cat out)"
grep -qE '^torch [0-9]+\.[0-9]+' out || fail "unidle train --version: $(cat out)"

touch batch.yaml
# offered WORD ...: what bash offers for the last word, after `unidle train`; like in bash, words are split at
# "=".
offered() {
  UNIDLE=$unidle bash -c '. <("$UNIDLE" completion bash); COMP_WORDS=("$UNIDLE" train "$@"); COMP_CWORD=$(($# + 1))
    _unidle; printf "%s\n" "${COMPREPLY[@]}"' bash "$@" >out 2>err || fail "completion of $*: $(cat err)"
}
# only LINE ...: exactly these were offered
only() { [ "$(sort out)" = "$(printf '%s\n' "$@" | sort)" ] || fail "offered: $(cat out)"; }

offered --plug
only --plugin --plugin-flags
offered batch
only batch.size= batch.accumulation= batch.yaml
offered batch.yaml precision.am
only precision.amp=
offered batch.yaml precision.amp =
only off auto fp16 bf16 true
offered batch.yaml precision.amp = b
only bf16
offered batch.yaml data.on_device = t
only true
offered precision.amp=f  # zsh does not split it
only precision.amp=fp16
"$unidle" completion fish >out
has out "unidle train words"
expect 0 train words
has out "optimizer.schedule=cosine"
finish
