#!/usr/bin/env bash
# unidle report in a real browser: the plots are there, nothing is fetched, no text of a record becomes
# markup, the script reads values and zooms, nothing is wider than a phone.
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
"$unidle" report optimise -o search.html >/dev/null
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

pages = {n: Page(n + ".html.dom") for n in ("one", "gpu", "several", "search", "nasty", "empty", "short", "cut")}
for name, page in pages.items():
    source = open(name + ".html", encoding="utf-8").read()
    assert not re.search(r"https?://|url\(|@import|<img|<iframe|<object", source), name
    assert not page.fetched, (name, page.fetched)
    assert not page.handlers, (name, page.handlers)
    # The only script is the page's own, and the page's policy lets no other run.
    assert page.counts.get("script", 0) == 1 and page.counts.get("img", 0) == 0, name
    assert "script-src 'nonce-page'" in source, name
    numbers = re.findall(r'(?:\b[xyrd]|[xy][12]|c[xy]|width|height)="([^"]*)"', source)
    assert not [n for n in numbers if re.search(r"nan|inf|[eE][+-]?\d", n)], name
    assert page.counts.get("svg", 0) == page.counts.get("desc", 0), name

def has(name, *words):
    text = " ".join(" ".join(pages[name].text).split())
    for word in words:
        assert word in text, (name, word)

# Throughput, where the time went, CPUs, loss, psnr, step times.
assert pages["one"].counts["svg"] == 6, pages["one"].counts
assert pages["one"].counts["path"] >= 8 + 6, pages["one"].counts
has("one", "superres-naive", "input wait", "Training loss", "wall time (s)", "samples seen", "loader.workers",
    "not in effect", "AMD EPYC", "median", "Flame graph of the training process")
assert pages["gpu"].counts["svg"] == 8, pages["gpu"].counts
has("gpu", "GPU memory in use", "GiB", "GPU power", "NVIDIA H100")
has("several", "superres-tuned trains", "Before and after", "What was changed", "loader.workers=8", "Verification")
has("search", "What each change brought", "verified in 3 pairs", "3.98x", "precision.amp: bf16")
for word in ("No rule found", "wall time", "{", "What could not be seen"):
    assert word not in " ".join(pages["search"].text).split('"use strict"')[0].split("}")[-1], word
has("nasty", "</script><img src=x onerror=alert(1)>\"'&")
has("empty", "No training step was seen")
has("short", "3 training steps were seen")
has("cut", "The record has no end")
PY

# A picture that is not empty, at both widths, and nothing wider than the window.
for width in 1280 400; do
  for page in one several search; do
    cat >frame.html <<FRAME
<body style="margin:0"><iframe id="f" src="$page.html" style="width:${width}px;height:1500px;border:0"></iframe>
<script>f.onload=()=>{const d=f.contentDocument.documentElement;
const all=(what,is)=>Array.from(d.querySelectorAll(what)).filter(is).length;
const broken=all('.mark b,.ticks span',e=>e.offsetHeight>20)+all('pre.diff',e=>e.scrollWidth>e.clientWidth);
document.title=d.scrollWidth+'/'+d.clientWidth+'/'+broken}</script>
FRAME
    browse --allow-file-access-from-files --virtual-time-budget=2000 --dump-dom "file://$work/frame.html" 2>/dev/null |
      grep -oE '<title>[0-9]+/[0-9]+/[0-9]+' | tr -dc '0-9/' >fit
    [ "$(cut -d/ -f1 fit)" -le "$(cut -d/ -f2 fit)" ] || fail "$page scrolls sideways at $width: $(cat fit)"
    [ "$(cut -d/ -f3 fit)" = 0 ] || fail "$page has labels of two lines, or code cut off, at $width: $(cat fit)"
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

# The script: values under the pointer and by keys, zoom by dragging, all of it by Escape.
cat >act.html <<'ACT'
<body><iframe id="f" src="one.html" style="width:1200px;height:900px"></iframe><script>
f.onload = () => {
  const page = f.contentDocument, figure = page.querySelector("figure.full"), area = figure.querySelector(".area");
  const box = area.getBoundingClientRect(), svg = area.querySelector("svg"), readout = figure.querySelector(".readout");
  const send = (type, share) => area.dispatchEvent(new f.contentWindow.PointerEvent(type, {
    clientX: box.left + share * box.width, clientY: box.top + 5, pointerType: "mouse", pointerId: 1, bubbles: true }));
  const press = (key) => area.dispatchEvent(new f.contentWindow.KeyboardEvent("keydown", { key, bubbles: true }));
  area.setPointerCapture = () => {};
  const seen = [];
  send("pointermove", 0.3);
  seen.push(readout.hidden ? "no readout" : readout.innerText);
  send("pointerdown", 0.25); send("pointermove", 0.75); send("pointerup", 0.75);
  seen.push(svg.getAttribute("viewBox"));
  press("Escape");
  seen.push(svg.getAttribute("viewBox"), String(readout.hidden));
  press("End"); press("ArrowLeft");
  seen.push(readout.querySelector("b").innerText);
  const calls = Array.from(page.querySelectorAll(".flame span")).filter((name) => name.innerText.startsWith("Photos"));
  const whole = page.querySelector(".flame").getBoundingClientRect().width;
  const share = () => (calls[0].getBoundingClientRect().width / whole).toFixed(2);
  seen.push(share()); calls[0].click(); seen.push(share()); calls[0].click(); seen.push(share());
  document.title = JSON.stringify(seen);
};
</script>
ACT
browse --allow-file-access-from-files --virtual-time-budget=2000 --dump-dom "file://$work/act.html" >act.dom 2>/dev/null
python3 - <<'PY' || fail "the page's script does not do what it should: $(grep -o '<title>.*</title>' act.dom)"
import html, json, re
seen = json.loads(html.unescape(re.search(r"<title>(.*?)</title>", open("act.dom", encoding="utf-8").read()).group(1)))
assert re.search(r"Throughput\n[\d.]+\n", seen[0]) and re.search(r"CPUs busy\n[\d.]+ %", seen[0]), seen
left, _, width, _ = map(float, seen[1].split())
assert abs(left - 250) < 5 and abs(width - 500) < 10, seen
assert seen[2:4] == ["0 0 1000 1000", "true"], seen
assert re.fullmatch(r"[\d.]+ s", seen[4]), seen
assert seen[5:] == ["0.70", "1.00", "1.00"], seen  # a second click shows the caller, which has no other call here
PY

code=0
"$unidle" report nowhere 2>err || code=$?
[ "$code" -eq 2 ] && grep -q nowhere err || fail "a record that is none must end with 2"

echo "report: ok"
