#!/usr/bin/env bash
# unidle check on this machine, on folders that simulate others, and with a library that simulates NVML.
subcommand=check
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
fake="$UNIDLE_LIB/libunidle_fake_nvml.so"

json() { python3 -c "import json, sys; d = json.load(open('out')); sys.exit(not ($1))" || fail "not true: $1: $(cat out)"; }
# put FILE TEXT: a file of the simulated machine.
put() {
  mkdir -p "$(dirname "host/$1")"
  printf '%b' "$2" >"host/$1"
}

"$unidle" check >out 2>err
code=$?
[ $code = 0 ] || [ $code = 1 ] || fail "this machine: exit code $code"
[ ! -s err ] || fail "this machine: stderr has $(cat err)"
has out "cpu"
grep -q $'\x1b' out && fail "colours without a terminal"
"$unidle" check --format json >out 2>err
json 'd["schema"] == "unidle.check/1" and d["host"]["cpu"]["allowed"] > 0 and d["speed"] is None'
expect 2 --format xml
expect 2 nonsense

# A simulated machine: nothing is read from the real one.
export UNIDLE_HOST_ROOT="$folder/host"
export UNIDLE_NVML_LIBRARY="$folder/nowhere.so"
unset OMP_NUM_THREADS CUDA_VISIBLE_DEVICES
export COLUMNS=200
put proc/cpuinfo 'model name\t: Some CPU\nflags\t: avx512_bf16\n'
put proc/meminfo 'MemTotal: 67108864 kB\nMemAvailable: 60000000 kB\n'
put proc/self/status 'Cpus_allowed_list:\t0-15\n'
put proc/self/cgroup '0::/job\n'
put proc/loadavg '0.10 0 0 1/1 1\n'
put sys/devices/system/cpu/online '0-15\n'
json_part() { python3 -c "import json, sys; print(json.dumps(json.load(sys.stdin)['$1'], indent=1))"; }
expect_problem() { # ID LEVEL
  "$unidle" check --format json >out 2>err
  json "{'id': '$1', 'level': '$2'} in [{k: p[k] for k in ('id', 'level')} for p in d['problems']]"
}
expect_none() {
  "$unidle" check --format json >out 2>err
  json "'$1' not in [p['id'] for p in d['problems']]"
}
expect_problem gpu-none info
json 'd["gpus"] == []'
put sys/fs/cgroup/job/cpu.max '200000 100000\n'
expect_problem cpu-quota warning
put sys/fs/cgroup/job/cpu.max 'max 100000\n'
expect_none cpu-quota
put proc/self/status 'Cpus_allowed_list:\t0-7\n'
expect_problem cpu-affinity info
put proc/self/cgroup '4:cpu,cpuacct:/job\n'
put sys/fs/cgroup/cpu,cpuacct/job/cpu.stat 'nr_periods 100\nnr_throttled 30\nthrottled_time 5000000000\n'
expect_problem cpu-throttled warning
OMP_NUM_THREADS=64 expect_problem threads-too-many warning
OMP_NUM_THREADS=1 expect_problem threads-one warning

# A card on the bus without a driver, and a driver that does not work.
put sys/bus/pci/devices/0000:1b:00.0/vendor '0x10de\n'
put sys/bus/pci/devices/0000:1b:00.0/class '0x030200\n'
expect_problem gpu-driver-missing critical
expect 1
has out "install the driver"
UNIDLE_NVML_LIBRARY=libm.so.6 expect_problem gpu-driver-broken critical
json 'd["gpus"] is None'

# Two devices, one of them faulty; a third that is lost.
cat >script <<'SCRIPT'
count 3
driver 570.86
cuda 12080
name H200
capability 9.0
memory 150754820096:2000000000
power 90000
power_limit 700000
power_default 700000
temperature 30
slowdown_temperature 90
clock 345
max_clock 1980
throttle 1
pcie 5:16:5:16
ecc 1
ecc_errors 0
rows 0:0
persistence 1
processes none
1.ecc_errors 2
1.pcie 3:8:5:16
1.power_limit 400000
1.throttle 0x48
1.processes 4711:30000000000
2.handle error:15
SCRIPT
export UNIDLE_NVML_LIBRARY="$fake" UNIDLE_FAKE_NVML_SCRIPT="$folder/script"
expect 1
has out "NVIDIA 570.86, CUDA up to 12.8"
has out "H200 (compute 9.0)"
has out "nobody computes on it"
lacks out "gpu0:"
for id in gpu-ecc-errors gpu-link-width gpu-power-limit gpu-throttled gpu-in-use; do has out "[$id]"; done
has out "4711"
"$unidle" check --lang zh >out
all_chinese out
"$unidle" check --format json --lang zh | json_part problems >chinese
"$unidle" check --format json --lang en | json_part problems >english
cmp -s chinese english || fail "JSON differs with the language"
expect_problem gpu-lost critical
json '[p["subject"] for p in d["problems"] if p["id"] == "gpu-lost"] == ["gpu2"]'
json 'd["gpus"][2]["power_w"] is None and d["gpus"][0]["ecc_uncorrected"] == 0'
json 'd["gpus"][0]["throttle_reasons"] == [] and "temperature (hardware)" in d["gpus"][1]["throttle_reasons"]'
for width in 40 80 120; do
  COLUMNS=$width "$unidle" check >out
  python3 -c "
import sys
sys.exit(max(len(line.rstrip('\n')) for line in open('out', encoding='utf-8')) > $width)" || fail "wider than $width"
done

# An AMD device in sysfs.
put sys/class/drm/card0/device/vendor '0x1002\n'
put sys/class/drm/card0/device/mem_info_vram_total '68702699520\n'
put sys/class/drm/card0/device/gpu_busy_percent '5\n'
UNIDLE_NVML_LIBRARY=/nowhere.so "$unidle" check --format json >out
json 'd["gpus"][0]["kind"] == "rocm" and d["gpus"][0]["utilisation"] == 0.05'
unset UNIDLE_HOST_ROOT UNIDLE_NVML_LIBRARY

# --speed needs unidle-train beside unidle.
mkdir alone
cp "$unidle" alone/
(cd alone && ./unidle check --speed >out 2>err)
[ $? = 3 ] || fail "--speed without unidle-train: not 3"
grep -q 'dev build' alone/err || fail "--speed does not say how to get unidle-train: $(cat alone/err)"
[ "$(wc -l <alone/err)" = 1 ] || fail "more than one line: $(cat alone/err)"
if [ -x "$UNIDLE_BIN/unidle-train" ]; then
  "$unidle" check --speed --format json >out 2>err
  json 'd["speed"]["torch"]["devices"][0]["matmul_tflops"]["fp32"] > 0'
  json 'd["speed"]["disk"]["read_bytes_s"] > 0 and d["speed"]["decode"]["jpeg_images_s"] > 0'
  "$unidle" check --speed >out 2>err
  has out "matmul GFLOP/s"
  "$unidle" check --speed --lang zh >out 2>err
  all_chinese out
fi

finish
