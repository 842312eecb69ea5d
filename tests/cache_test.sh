#!/usr/bin/env bash
# unidle cache on caches that are intact, damaged, foreign and not there.
subcommand=cache
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

json() { python3 -c "import json, sys; d = json.load(open('out')); sys.exit(not ($1))" || fail "not true: $1: $(cat out)"; }

# An entry as docs/cache-format.md has it, made without unidle: entry FOLDER NUMBER
entry() {
  python3 - "$1" "$2" <<'PY'
import hashlib, os, struct, sys, zlib

folder, number = sys.argv[1], int(sys.argv[2])
name = str(number).encode()
key = hashlib.sha256(
    b"".join(k + struct.pack("<QQ", len(n), len(v)) + n + v for k, n, v in ((b"t", b"what", b"name"), (b"b", b"name", name)))
).digest()
data = struct.pack("<100f", *range(number, number + 100))
table = struct.pack("<HBBIQQQ", 6, 11, 1, 0, 128, len(data), 100) + b"values\0\0"
rest = struct.pack("<QII", 128 + 448, 1, len(table)) + key + table
rest += bytes(128 - 16 - len(rest)) + data + bytes(-len(data) % 64)
start = b"\x89UNIDLE\n" + struct.pack("<I", 1)
blob = start + struct.pack("<I", zlib.crc32(start + rest)) + rest
place = os.path.join(folder, "v1/blobs", key.hex()[:2])
os.makedirs(place, exist_ok=True)
with open(os.path.join(place, key.hex()), "wb") as file:
    file.write(blob)
PY
}
for number in 1 2 3 4 5; do entry features $number; done

expect 0 stats features --format json
json 'd == {"schema": "unidle.cache/1", "entries": 5, "bytes": 5 * 576, "max_bytes": None}'
expect 0 stats features
has out "5 entries, 2.8 KiB"
expect 0 verify features --format json
json 'd == {"checked": 5, "damaged": 0, "set_aside": 0}'

expect 0 path features --name 3
file=$(cat out)
[ -f "$file" ] || fail "path: no file $file"
expect 1 path features --name 6
expect 0 path features --key "$(basename "$file")" --format json
json 'd["exists"] is True and d["path"].endswith(d["key"])'
printf 'x' | dd of="$file" bs=1 seek=200 conv=notrunc 2>/dev/null
expect 1 verify features --format json
json 'd == {"checked": 5, "damaged": 1, "set_aside": 1}'
[ -f "features/v1/damaged/$(basename "$file")" ] || fail "the damaged entry was not set aside"
expect 0 verify features
has out "4 entries"

expect 0 prune features --max-bytes 1200 --format json
json 'd["evicted"] == {"entries": 2, "bytes": 2 * 576} and d["removed_damaged"] == 1 and d["entries"] == 2 and d["bytes"] == 1152'
expect 0 stats features --format json
json 'd["entries"] == 2'
rm features/v1/index.db*
expect 0 stats features --format json
json 'd["entries"] == 2 and d["bytes"] == 1152'

# What is no cache, and wrong usage.
for action in stats verify prune; do
  refused $action nowhere
  [ ! -e nowhere ] || fail "$action made a folder"
  touch file
  refused $action file
done
refused path features --key 123
refused
refused nonsense
refused prune features --max-bytes much
mkdir later
echo '{"format": 9, "least_format": 9}' > later/unidle-cache.json
mkdir later/v1
refused stats later
has err "format 9"

# Where it is by default.
expect 0 path
has out "$UNIDLE_HOME/cache"
UNIDLE_CACHE=features expect 0 stats
has out "2 entries"

# A folder that may not be written is read.
if [ "$(id -u)" != 0 ]; then
  chmod -R a-w features
  expect 0 stats features --format json
  json 'd["entries"] == 2'
  chmod -R u+w features
fi

subcommand=
"$unidle" completion bash > script
bash -c '. ./script; COMP_WORDS=(unidle cache ""); COMP_CWORD=2; _unidle; echo "${COMPREPLY[*]}"' > out 2>&1
has out "stats"
has out "prune"
bash -c '. ./script; COMP_WORDS=(unidle cache prune --); COMP_CWORD=3; _unidle; echo "${COMPREPLY[*]}"' > out 2>&1
has out "--max-bytes"

finish
