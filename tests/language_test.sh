#!/usr/bin/env bash
# Each command in both languages: no English sentence is left in a Chinese answer, nothing Chinese is in an
# English one, and JSON does not change with the language. check, monitor and slurm have tests of their own.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
"$UNIDLE_BIN/../tests/unidle_sample_records" "$folder" || fail "no records"

# page_text FILE: what a page shows, one line a text, without code, script and style sheet.
page_text() {
  python3 - "$1" <<'PY'
import html.parser
import sys


class Text(html.parser.HTMLParser):
    hidden = 0

    def handle_starttag(self, tag, attributes):
        self.hidden += tag in ("style", "script", "code")

    def handle_endtag(self, tag):
        self.hidden -= tag in ("style", "script", "code")

    def handle_data(self, data):
        if not self.hidden and data.strip():
            print(data.strip().replace("\u00a0", " "))  # numbers stay beside their units


Text().feed(open(sys.argv[1], encoding="utf-8").read())
PY
}

# same_json CODE ARGUMENTS...: the command's JSON is the same in both languages.
same_json() {
  expect "$@" --format json --lang en
  cp out english
  expect "$@" --format json --lang zh
  cmp -s english out || fail "JSON differs with the language: ${*:2}"
}

export COLUMNS=100

for pair in "superres-naive superres-tuned" "short superres-tuned" "empty superres-tuned"; do
  # shellcheck disable=SC2086
  expect 0 compare $pair --lang zh
  all_chinese out
  # shellcheck disable=SC2086
  same_json 0 compare $pair
done
expect 1 compare superres-tuned superres-naive --lang zh
all_chinese out
same_json 1 compare superres-tuned superres-naive
same_json 0 compare superres-naive optimise
LANGUAGE="" LC_ALL=zh_CN.UTF-8 "$unidle" compare superres-naive superres-tuned >out
all_chinese out

for records in superres-naive keypoint-h100 empty short "superres-naive superres-tuned keypoint-h100" "empty empty"; do
  # shellcheck disable=SC2086
  expect 0 report $records -o page.html --lang zh
  grep -q '<html lang="zh-CN">' page.html || fail "$records: the page does not tell its language"
  page_text page.html >text
  all_chinese text
done
expect 0 report superres-naive -o page.html --lang en
grep -q '<html lang="en">' page.html || fail "the English page does not tell its language"

for arguments in "--folder ." "--folder nowhere" "--folder nowhere --bad"; do
  # shellcheck disable=SC2086
  expect 0 runs $arguments --lang zh
  all_chinese out
done
same_json 0 runs --folder .
expect 0 runs rm --folder . --before 1h --lang zh
all_chinese err

# Wide characters take two columns.
for width in 40 80 120; do
  COLUMNS=$width expect 0 compare superres-naive superres-tuned --lang zh
  at_most_columns "$width" out
  COLUMNS=$width expect 0 diagnose superres-naive --lang zh
  at_most_columns "$width" out
done

# in_both FILE CODE ARGUMENTS...: the answer (out) or what is said beside it (err), in Chinese and in English.
in_both() {
  local file=$1
  shift
  expect "$@" --lang en
  no_chinese "$file"
  expect "$@" --lang zh
  all_chinese "$file"
}

in_both out 0 diagnose superres-naive
expect 0 report optimise -o page.html --lang zh
page_text page.html >text
all_chinese text
has text "训练进程自己准备每个批次，设备在等待；本任务可用 8 个 CPU"
has text "loader.workers=4；3 次交替的中位数；速度为目前最好的 1.021 倍"
expect 0 report optimise -o page.html --lang en
page_text page.html >text
no_chinese text
has text "loader.workers=4; median of 3 turns; 1.021x of the best so far"

# A configuration: the reasons in the diff, what is left alone, notes.
printf 'train:\n  num_workers: 0\n  pin_memory: false\n  use_amp: false\n  prefetch_factor: 1\n' >train.yaml
printf 'num_workers: 0  # 更多会崩溃\npersistent_workers: false\nbatch_size: 4\ngradient_accumulation_steps: 4\ncompile: false\n' >decided.yaml
printf 'a: 1\n' >unknown.yaml
# in_both_optimize ARGUMENTS...: the same for optimize, without the lines of the configuration and what the
# system says of a missing driver.
in_both_optimize() {
  expect 0 optimize "$@" --lang en
  sed -E '/^    # /!{/^[-+@ ]/d}; /its comment says/d' out >own
  no_chinese own
  expect 0 optimize "$@" --lang zh
  sed -E '/^    # /!{/^[-+@ ]/d}; s/（libnvidia-ml[^）]*）//' out >own
  all_chinese own
}

for config in train decided unknown; do
  in_both_optimize $config.yaml --device "A100 40GB" --profile fast --dry-run
  same_json 0 optimize $config.yaml --device "A100 40GB" --profile fast --dry-run
done
in_both_optimize train.yaml -o better.yaml
in_both_optimize "$UNIDLE_SOURCE/workloads/superres/naive.yaml" --device "A100 40GB" --cpus 16 --profile fast --dry-run
in_both_optimize "$UNIDLE_SOURCE/workloads/protein/naive.yaml" --device cpu --dry-run
expect 0 optimize train.yaml --in-place --lang zh
has out "旧文件保存为 train.bak.yaml"
expect 0 optimize train.yaml --undo --lang zh
all_chinese out

# After a command; what the command itself says is its own.
expect 0 run -o seen --lang zh -- true
all_chinese err
expect 0 run -o applied --lang zh --apply loader.workers=2 --trace 3 -- true
all_chinese err
expect 0 run -o plain --lang en --trace 3 -- true
no_chinese err

# A profiler's trace, one and two.
event() { echo "{\"ph\":\"X\",\"cat\":\"$1\",\"name\":\"$2\",\"pid\":0,\"tid\":7,\"ts\":$3,\"dur\":$4,\"args\":{\"device\":0,\"stream\":7,\"bytes\":4096}}"; }
echo "{\"schemaVersion\":1,\"traceEvents\":[$(event user_annotation ProfilerStep#1 90 110),$(event cpu_op aten::mm 95 30),$(event cuda_runtime cudaLaunchKernel 96 4),$(event kernel nvjet_hsh 100 50),$(event kernel ncclKernel 155 10),$(event gpu_memcpy "Memcpy HtoD (Pinned -> Device)" 170 9),$(event kernel add 190 10)]}" >a.json
sed 's/"dur":50/"dur":80/' a.json >b.json
echo "{\"schemaVersion\":1,\"traceEvents\":[$(event cpu_op aten::mm 95 30)]}" >host.json
for traces in a.json "a.json b.json" host.json; do
  # shellcheck disable=SC2086
  in_both out 0 trace $traces
  # shellcheck disable=SC2086
  same_json 0 trace $traces
done
expect 0 trace seen -o timeline.json --lang zh
all_chinese err

# The cache.
mkdir -p features/v1/blobs
in_both out 0 cache stats features
in_both out 0 cache verify features
in_both out 0 cache prune features --max-bytes 1GB
in_both out 0 cache stats features
same_json 0 cache stats features

if [ -x "$UNIDLE_BIN/unidle-train" ]; then
  printf 'workload: recsys\n' >config.yaml
  settings=(prepare.source=generated prepare.samples=300 device=cpu cpu.threads=1 train.samples=64)
  expect 0 train config.yaml "${settings[@]}" --prepare
  in_both out 0 train config.yaml "${settings[@]}" -q
  in_both out 0 train config.yaml "${settings[@]}" --grid model.width=32,64 -q
fi

# The environment, as GNU gettext reads it.
LANGUAGE=zh_CN LC_ALL=en_US.UTF-8 "$unidle" runs --folder nowhere >out
all_chinese out
LANGUAGE=zh_CN LC_ALL=C "$unidle" runs --folder nowhere >out
no_chinese out
LANGUAGE=en LC_ALL=zh_CN.UTF-8 "$unidle" runs --folder nowhere >out
no_chinese out

finish
