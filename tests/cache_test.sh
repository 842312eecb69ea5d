#!/usr/bin/env bash
# unidle cache on caches that are intact, damaged, foreign and missing.
subcommand=cache
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

json() { python3 -c "import json, sys; d = json.load(open('out')); sys.exit(not ($1))" || fail "not true: $1: $(cat out)"; }

# An entry in the format of docs/cache-format.md, made without unidle: entry FOLDER NUMBER
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
rm features/v1/index-2.db*
expect 0 stats features --format json
json 'd["entries"] == 2 and d["bytes"] == 1152'

# Computed ahead: by unidle itself, and by a program.
printf '>a\nACDEFGHIKL\nMNPQRSTVWY\n>b\nACDEF\n>same\nACDEF\n' > peptides.fasta
expect 0 warm ahead --inputs peptides.fasta --predictor peptide --format json
json 'd["inputs"] == 2 and d["computed"] == 2 and d["there"] == 0 and d["failed"] == 0 and not d["interrupted"]'
expect 0 warm ahead --inputs peptides.fasta --predictor peptide --format json
json 'd["computed"] == 0 and d["there"] == 2'
expect 0 verify ahead --format json
json 'd == {"checked": 2, "damaged": 0, "set_aside": 0}'
echo ACX >> peptides.fasta
expect 1 warm ahead --inputs peptides.fasta --predictor peptide
has out "none of the twenty"

cat > predictor.py <<'PY'
import json, os, struct, sys

source, sink = sys.stdin.buffer, sys.stdout.buffer


def read():
    head = source.read(16)
    if len(head) < 16:
        sys.exit(0)
    magic, head_bytes, data_bytes = struct.unpack("<4sIQ", head)
    return json.loads(source.read(head_bytes)), source.read(data_bytes)


def write(head, data=b""):
    text = json.dumps(head).encode()
    sink.write(struct.pack("<4sIQ", b"UPP1", len(text), len(data)) + text + data)
    sink.flush()


hello, _ = read()
scale = hello["parameters"].get("scale", 1)
write({"type": "ready", "protocol": 1, "identity": "letters", "version": "1"})
while True:
    head, data = read()
    if head["type"] == "bye":
        sys.exit(0)
    items, out = [], b""
    for length in head["lengths"]:
        text, data = data[:length], data[length:]
        if text == b"deadly":
            os._exit(3)
        with open("computed", "a") as log:
            log.write(text.decode() + "\n")
        if text == b"slow":
            os.kill(os.getppid(), 2)
            sys.stdin.buffer.read()
        items.append({"tensors": [{"name": "letters", "dtype": "float32", "shape": [length]}]})
        out += struct.pack(f"<{length}f", *(scale * letter for letter in text))
    write({"type": "result", "batch": head["batch"], "items": items}, out)
PY
printf 'one\nthree\ndeadly\ntwelve\n' > words
expect 1 warm letters --inputs words --format json -- python3 predictor.py
json 'd["computed"] == 3 and d["failed"] == 1 and d["failures"][0]["kind"] == "poison" and d["failures"][0]["input"] == "deadly"'
expect 0 stats letters --format json
json 'd["entries"] == 3'
grep -v deadly words > good
expect 0 warm letters --inputs good --parameters '{"scale": 2}' --format json -- python3 predictor.py
json 'd["computed"] == 3'

# Interrupted: computed entries stay, and the same command resumes.
for word in $(seq 100 400); do echo "word$word"; done > many
{ cat many; echo slow; } > stopped
rm -f computed
expect 1 warm stoppable --inputs stopped --tokens 70 --format json -- python3 predictor.py
json 'd["interrupted"]'
"$unidle" cache stats stoppable --format json > out
json '0 < d["entries"] <= 301'
expect 0 warm stoppable --inputs many --tokens 70 --format json -- python3 predictor.py
json 'd["computed"] + d["there"] == 301 and d["there"] > 0'
# Two at once compute each input once.
rm -f computed
for process in 1 2; do "$unidle" cache warm shared --inputs many --tokens 70 -- python3 predictor.py > "out$process" 2>&1 & done
wait
[ "$(sort computed | uniq -d | wc -l)" = 0 ] && [ "$(wc -l < computed)" = 301 ] || fail "two at once: $(wc -l < computed) computations"

refused warm
refused warm ahead --inputs peptides.fasta
refused warm ahead --inputs peptides.fasta --predictor nonsense
refused warm ahead --inputs nowhere --predictor peptide
refused warm ahead --inputs words -- no-such-program-here
refused warm ahead --inputs words --parameters 7 -- python3 predictor.py

# Folders that are not a cache, and wrong usage.
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

# The default folder.
expect 0 path
has out "$UNIDLE_HOME/cache"
UNIDLE_CACHE=features expect 0 stats
has out "2 entries"

# A folder without write permission is readable.
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
