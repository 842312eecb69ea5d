#!/usr/bin/env bash
# The metrics of `unidle monitor --listen`, scraped by a real Prometheus server and queried from it; the alert
# rules and the dashboard of monitoring/ with that server.
subcommand=monitor
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

PATH=$PATH:$UNIDLE_SOURCE/.venv/prometheus/usr/bin   # where ./dev setup unpacks it
if ! command -v prometheus >/dev/null || ! command -v promtool >/dev/null; then
  echo "skipped: no prometheus (./dev setup unpacks one on Debian and Ubuntu)"
  exit 77
fi
export UNIDLE_NVML_LIBRARY="$UNIDLE_LIB/libunidle_fake_nvml.so" UNIDLE_FAKE_NVML_SCRIPT="$folder/script"
cat >script <<'SCRIPT'
count 1
name H200
memory 150754820096:40000000000
utilisation 14
power 350000
SCRIPT
"$unidle" monitor --listen :0 --interval 100 >out 2>err &
children+=("$!")
# The server's own port: chosen by the kernel, released just before the server takes it.
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
for _ in $(seq 200); do grep -q 'serving http' err && break; sleep 0.1; done
target=$(sed -n 's,.*serving http://\(.*\)/metrics.*,\1,p' err)
[ -n "$target" ] || fail "monitor serves nothing: $(cat err)"

cat >prometheus.yml <<YML
global: {scrape_interval: 200ms, scrape_timeout: 200ms}
scrape_configs:
  - job_name: unidle
    static_configs: [{targets: ["$target"]}]
YML
promtool check config prometheus.yml >promtool.out 2>&1 || fail "the configuration: $(cat promtool.out)"
prometheus --config.file=prometheus.yml --storage.tsdb.path=data --web.listen-address="127.0.0.1:$port" \
  >server.out 2>&1 &
children+=("$!")

python3 - "$port" "$UNIDLE_SOURCE" <<'PY' || fail "asked back from the server: $(tail -3 server.out)"
import json, re, sys, time, urllib.error, urllib.parse, urllib.request

def ask(query):
    url = "http://127.0.0.1:%s/api/v1/query?query=%s" % (sys.argv[1], urllib.parse.quote(query))
    return json.load(urllib.request.urlopen(url, timeout=10))["data"]["result"]

deadline = time.monotonic() + 60
result = []
while time.monotonic() < deadline and not result:
    try:
        result = ask("unidle_gpu_utilisation_ratio")
    except (OSError, ValueError):
        pass
    time.sleep(0.1)
assert result, "the server never had a value"
assert result[0]["metric"]["gpu"] == "gpu0" and result[0]["metric"]["job"] == "unidle", result
assert float(result[0]["value"][1]) == 0.14, result
assert float(ask("unidle_gpu_memory_used_bytes")[0]["value"][1]) == 40000000000
assert ask("up{job='unidle'}")[0]["value"][1] == "1"
families = {one["metric"]["__name__"] for one in ask('{__name__=~"unidle_.+"}')}
assert len(families) > 5, families

# The server understands every expression of the dashboard, and the metrics in it are served. Those that this
# machine cannot have (activity of multiprocessors, a current run) are known to the exporter.
with open(sys.argv[2] + "/monitoring/dashboard.json") as file:
    dashboard = json.load(file)
with open(sys.argv[2] + "/src/unidle/monitor/exporter.cpp") as file:
    known = set(re.findall(r'"(unidle_[a-z_]+)"', file.read()))
targets = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
assert len(targets) >= 12 and len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])
answered = 0
for expression in targets:
    assert set(re.findall("unidle_[a-z_]+", expression)) <= known, expression
    answered += bool(ask(expression.replace("$instance", ".*")))
assert answered >= 8, answered
with open(sys.argv[2] + "/monitoring/alerts.yml") as file:
    assert set(re.findall("unidle_[a-z_]+", file.read())) <= known
PY
python3 -c 'import sys, urllib.request; sys.stdout.write(urllib.request.urlopen(sys.argv[1], timeout=20).read().decode())' \
  "http://$target/metrics" >metrics.txt
promtool check metrics <metrics.txt >promtool.out 2>&1 || fail "promtool: $(cat promtool.out)"
promtool check rules "$UNIDLE_SOURCE/monitoring/alerts.yml" >promtool.out 2>&1 || fail "alerts: $(cat promtool.out)"
promtool test rules "$UNIDLE_SOURCE/monitoring/alerts_test.yml" >promtool.out 2>&1 || fail "alerts: $(cat promtool.out)"

finish
