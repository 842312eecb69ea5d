#!/usr/bin/env bash
# unidle monitor --web: the page of a run under way, who gets it, and in Chromium that its figures move.
subcommand=monitor
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
expect 2 --web nonsense --seconds 0.1
expect 2 --web 192.0.2.1:80 --seconds 0.1 # of no machine
[ "$(wc -l <err)" = 1 ] || fail "more than one line: $(cat err)"
expect 2 --web=+127.0.0.1:0 --seconds 0.1
has err "no name of a host"
"$unidle" monitor "--web=[::1]:0" --seconds 0.1 >out 2>err || has err "without IPv6"

export UNIDLE_NVML_LIBRARY="$UNIDLE_LIB/libunidle_fake_nvml.so" UNIDLE_FAKE_NVML_SCRIPT="$folder/script"
cat >script <<'SCRIPT'
count 1
name H200
memory 150754820096:40000000000
utilisation 14
power 350000
SCRIPT
unset SSH_CONNECTION
"$unidle" monitor --web --interval 100 >out 2>err &
children+=("$!")
for _ in $(seq 200); do grep -q 'http://' err && break; sleep 0.1; done
address=$(sed -n 's,.*\(http://[^ ]*\).*,\1,p' err)
[ -n "$address" ] || fail "no page is served: $(cat err)"

python3 - "$address" <<'PY' || fail "what the server answers: $(cat err)"
import http.client, re, sys, urllib.parse
from concurrent.futures import ThreadPoolExecutor

where = urllib.parse.urlsplit(sys.argv[1])
token = urllib.parse.parse_qs(where.query)["token"][0]
assert where.hostname == "127.0.0.1" and re.fullmatch("[0-9a-f]{32}", token), sys.argv[1]

def ask(path, method="GET", body=None):
    connection = http.client.HTTPConnection(where.hostname, where.port, timeout=30)
    connection.request(method, path, body)
    answer = connection.getresponse()
    return answer.status, answer.read().decode(), answer.headers

status, page, headers = ask("/?token=" + token)
assert status == 200 and "</html>" in page and "gpu0: kernels ran" in page, (status, page[-300:])
assert headers["Cache-Control"] == "no-store" and headers["Referrer-Policy"] == "no-referrer", headers
status, content, _ = ask("/content?token=" + token)
assert status == 200 and "</html>" not in content and "H200" in content
assert "http://" not in re.sub(r"http://www.w3.org/\S*", "", page) and "https://" not in page, "from outside"

for path in ("/", "/?token=", "/?token=" + token[:-1], "/?token=" + token + "0", "/content", "/?token=%00",
             "/content?token=" + "0" * 32, "/../etc/passwd", "/?toke=" + token):
    status, text, _ = ask(path)
    assert status in (400, 403, 404) and "H200" not in text, (path, status)
assert ask("/etc/passwd?token=" + token)[0] == 404
assert ask("/?token=" + token, "POST", "x")[0] == 405
status, text, headers = ask("/?token=" + token, "HEAD")
assert status == 200 and text == "" and int(headers["Content-Length"]) > 1000, headers

with ThreadPoolExecutor(16) as pool:
    answers = list(pool.map(lambda _: ask("/content?token=" + token)[0], range(64)))
assert answers == [200] * 64, answers
PY

if browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome); then
  # The page, a second later the figures of then, and after the end of the monitor that it has ended.
  cat >watch.py <<'PY'
import json, os, re, signal, socket, struct, subprocess, sys, tempfile, time, urllib.request, base64

browser, address, monitor = sys.argv[1], sys.argv[2], int(sys.argv[3])
with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
    said = open(os.path.join(home, "said"), "w+")
    process = subprocess.Popen(
        [browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--remote-debugging-port=0",
         "--user-data-dir=" + home, address], stderr=said, stdout=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 60
        found = None
        while found is None and time.monotonic() < deadline:
            time.sleep(0.1)
            found = re.search(r"ws://127\.0\.0\.1:(\d+)/", open(said.name).read())
        port = int(found.group(1))
        pages = []
        while not pages and time.monotonic() < deadline:
            time.sleep(0.1)
            listed = json.load(urllib.request.urlopen("http://127.0.0.1:%d/json" % port, timeout=10))
            pages = [one for one in listed if one["type"] == "page" and one["url"].startswith("http://")]
        path = pages[0]["webSocketDebuggerUrl"].split(str(port), 1)[1]
        link = socket.create_connection(("127.0.0.1", port), timeout=60)
        key = base64.b64encode(os.urandom(16)).decode()
        link.sendall(("GET %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                      "Sec-WebSocket-Key: %s\r\nSec-WebSocket-Version: 13\r\n\r\n" % (path, port, key)).encode())
        stream = link.makefile("rb")
        while stream.readline() != b"\r\n":
            pass

        def read():
            first, second = stream.read(2)
            length = second & 127
            if length > 125:
                length = struct.unpack(">H" if length == 126 else ">Q", stream.read(2 if length == 126 else 8))[0]
            return json.loads(stream.read(length))

        def evaluate(expression, number=[0]):
            number[0] += 1
            text = json.dumps({"id": number[0], "method": "Runtime.evaluate", "params": {
                "expression": expression, "returnByValue": True}}).ljust(200).encode()
            mask = os.urandom(4)
            link.sendall(b"\x81" + bytes([0x80 | 126]) + struct.pack(">H", len(text)) + mask +
                         bytes(byte ^ mask[at % 4] for at, byte in enumerate(text)))
            while True:
                answer = read()
                if answer.get("id") == number[0]:
                    return answer["result"]["result"].get("value")

        def until(expression):
            end = time.monotonic() + 60
            while time.monotonic() < end:
                if evaluate(expression):
                    return
                time.sleep(0.1)
            raise SystemExit("never came true: " + expression)

        until("document.readyState === 'complete'")
        until("document.querySelector('h1') !== null && document.querySelectorAll('path.line').length > 0")
        clock = evaluate("document.querySelector('header p.quiet').innerText")
        until("document.querySelector('header p.quiet').innerText !== %s" % json.dumps(clock))
        until("document.querySelectorAll('figure.zoomable').length === 1")  # the report's script is at work
        # A zoomed figure stays, and all else moves.
        evaluate("figure = document.querySelector('figure'); figure.querySelector('.whole').hidden = false; 1")
        clock = evaluate("document.querySelector('header p.quiet').innerText")
        until("document.querySelector('header p.quiet').innerText !== %s" % json.dumps(clock))
        assert evaluate("document.querySelector('figure') === figure"), "the figure was drawn anew"
        evaluate("figure.querySelector('.whole').hidden = true; 1")
        until("document.querySelector('figure') !== figure")
        assert evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
        os.kill(monitor, signal.SIGINT)
        until("Array.from(document.querySelectorAll('.caution')).some((one) => !one.hidden && one.innerText)")
    finally:
        process.terminate()
        process.wait(60)
PY
  python3 watch.py "$browser" "$address" "${children[0]}" || fail "the page in a browser"
  wait "${children[0]}" || fail "the monitor's exit code after Ctrl-C: $?"
  has out "Verdict"
else
  echo "not tried in a browser: there is no Chromium"
fi
finish
