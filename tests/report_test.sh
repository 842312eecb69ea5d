#!/usr/bin/env bash
# unidle report in a real browser: the plots are there, nothing is fetched, no text of a record becomes
# markup.
set -euo pipefail

browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)
if [ -z "$browser" ]; then
  echo "skipped: chromium is not installed (apt-get install chromium)"
  exit 77
fi

unidle="$UNIDLE_BIN/unidle"
samples="$UNIDLE_BIN/../tests/unidle_sample_records"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$samples" "$work"
cd "$work"

fail() {
  echo "FAILED: $*" >&2
  exit 1
}

# browse ARGS...: chromium without a window, with its own profile and no network.
browse() {
  timeout 120 "$browser" --headless --no-sandbox --disable-gpu --hide-scrollbars --user-data-dir="$work/profile" \
    --host-resolver-rules='MAP * ~NOTFOUND' "$@"
}

printed=$("$unidle" report superres-naive)
[ "$printed" -ef superres-naive/report.html ] || fail "the path is not printed: $printed"
"$unidle" report superres-naive -o one.html >/dev/null
cmp -s one.html superres-naive/report.html || fail "the same record gives other bytes"
"$unidle" report keypoint-h100 -o gpu.html >/dev/null
"$unidle" report superres-naive superres-tuned optimise -o several.html >/dev/null
for record in nasty empty short cut; do
  "$unidle" report "$record" -o "$record.html" >/dev/null || fail "no page for the record '$record'"
done

for page in *.html; do
  browse --enable-logging=stderr --log-level=0 --dump-dom "file://$work/$page" >"$page.dom" 2>"$page.log" ||
    fail "the browser could not show $page: $(tail -3 "$page.log")"
  ! grep -E 'CONSOLE' "$page.log" || fail "$page has console messages"
done

python3 - <<'PY' || fail "a page is not what it should be"
import html.parser, re

class Page(html.parser.HTMLParser):
    def __init__(self, name):
        super().__init__()
        self.counts, self.text, self.fetched, self.handlers = {}, [], [], []
        self.feed(open(name, encoding="utf-8").read())
    def handle_starttag(self, tag, attributes):
        self.counts[tag] = self.counts.get(tag, 0) + 1
        for key, value in attributes:
            if key in ("src", "href", "xlink:href", "srcset", "action") and value != "data:,":
                self.fetched.append((tag, key, value))
            if key.startswith("on"):
                self.handlers.append((tag, key))
    def handle_data(self, data):
        self.text.append(data)

pages = {n: Page(n + ".html.dom") for n in ("one", "gpu", "several", "nasty", "empty", "short", "cut")}
for name, page in pages.items():
    source = open(name + ".html", encoding="utf-8").read()
    outside = re.sub(r'xmlns="http://www.w3.org/2000/svg"', "", source)
    assert not re.search(r"https?://|url\(|@import|<script|<img|<iframe|<object", outside), name
    assert not page.fetched, (name, page.fetched)
    assert not page.handlers, (name, page.handlers)
    assert page.counts.get("script", 0) == 0 and page.counts.get("img", 0) == 0, name
    numbers = re.findall(r'(?:\b[xyrd]|[xy][12]|c[xy]|width|height)="([^"]*)"', source)
    assert not [n for n in numbers if re.search(r"nan|inf|[eE][+-]?\d", n)], name
    assert page.counts.get("svg", 0) == page.counts.get("desc", 0), name

def has(name, *words):
    text = " ".join(" ".join(pages[name].text).split())
    for word in words:
        assert word in text, (name, word)

# Two renderings per figure: timeline, throughput, CPUs, loss, psnr.
assert pages["one"].counts["svg"] == 10, pages["one"].counts
assert pages["one"].counts["path"] >= 2 * (8 + 5), pages["one"].counts
has("one", "superres-naive", "input wait", "Training loss", "wall time (s)", "samples seen", "loader.workers",
    "not in effect", "AMD EPYC")
assert pages["gpu"].counts["svg"] == 14, pages["gpu"].counts
has("gpu", "GPU memory in use", "GiB", "GPU power", "NVIDIA H100")
has("several", "superres-tuned trains", "Before and after", "Changes made", "loader.workers=8", "Verification")
has("nasty", "</script><img src=x onerror=alert(1)>\"'&")
has("empty", "No training step was seen")
has("short", "3 training steps were seen")
has("cut", "The record has no end")
PY

# A picture that is not empty, at both widths, and nothing wider than the window.
for width in 1280 400; do
  for page in one several; do
    cat >frame.html <<FRAME
<body style="margin:0"><iframe id="f" src="$page.html" style="width:${width}px;height:1500px;border:0"></iframe>
<script>f.onload=()=>{const d=f.contentDocument.documentElement;document.title=d.scrollWidth+'/'+d.clientWidth}</script>
FRAME
    browse --allow-file-access-from-files --virtual-time-budget=2000 --dump-dom "file://$work/frame.html" 2>/dev/null |
      grep -oE '<title>[0-9]+/[0-9]+' | tr -dc '0-9/' >fit
    [ "$(cut -d/ -f1 fit)" -le "$(cut -d/ -f2 fit)" ] || fail "$page scrolls sideways at $width: $(cat fit)"
    browse --window-size=1280,1500 --screenshot="$work/$page-$width.png" "file://$work/frame.html" 2>/dev/null
    python3 - "$page-$width.png" <<'PY' || fail "the screenshot of $page at $width is blank"
import struct, sys, zlib
data = open(sys.argv[1], "rb").read()
assert data[:8] == b"\x89PNG\r\n\x1a\n"
at, packed = 8, b""
while at < len(data):
    (length,), kind = struct.unpack(">I", data[at:at + 4]), data[at + 4:at + 8]
    packed += data[at + 8:at + 8 + length] if kind == b"IDAT" else b""
    at += 12 + length
pixels = zlib.decompress(packed)
assert len(packed) > 20000 and len(set(pixels)) > 100, (len(packed), len(set(pixels)))
PY
  done
done

code=0
"$unidle" report nowhere 2>err || code=$?
[ "$code" -eq 2 ] && grep -q nowhere err || fail "a record that is none must end with 2"

echo "report: ok"
