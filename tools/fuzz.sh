#!/usr/bin/env bash
# Fuzzes the readers of untrusted bytes (fuzz/README.md lists them) with libFuzzer, address and undefined
# sanitizers.
#   tools/fuzz.sh MINUTES [TARGET ...]      all targets share the time; without a name, all of them
# Prints the result of each, and ends with 1 if something crashed, hung or leaked: the inputs are in
# build-fuzz/crashes/TARGET. New inputs stay in build-fuzz/corpus for the next time; build-fuzz/log keeps all
# output.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

usage() { sed -n '2,5s/^# //p' "${BASH_SOURCE[0]}" >&2; exit 2; }
[[ ${1:-} =~ ^[0-9]+$ ]] && [ "$1" -gt 0 ] || usage
minutes=$1; shift

# The newest clang++ of the distribution that has libFuzzer.
find_clang() {
  local name
  for name in clang++ $(compgen -c clang++- | grep -E '^clang\+\+-[0-9]+$' | sort -t- -k2 -rn | uniq); do
    if command -v "$name" >/dev/null &&
       echo 'extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }' |
         "$name" -x c++ -fsanitize=fuzzer,address -o /dev/null - 2>/dev/null; then
      echo "$name"
      return
    fi
  done
  echo "fuzz: there is no clang with libFuzzer here: apt-get install clang libclang-rt-dev" \
       "(mutations that are blind to coverage need none: build/tests/unidle_fuzz TARGET -max_total_time=60 fuzz/corpus/TARGET)" >&2
  exit 3
}

build() {
  if [ ! -f build-fuzz/build.ninja ]; then
    CC=${clang/++/} CXX=$clang cmake --preset fuzz >&2
  fi
  cmake --build build-fuzz --target unidle_fuzz >&2
}

# A value of libFuzzer's output: the first or last coverage, or a final statistic.
coverage() { grep -oE 'cov: [0-9]+' "$1" | "$2" -n 1 | grep -oE '[0-9]+' || echo 0; }
executions() { grep -oE 'number_of_executed_units: +[0-9]+' "$1" | grep -oE '[0-9]+$' || grep -oE '^#[0-9]+' "$1" | tail -n 1 | tr -d '#' || echo 0; }

fuzz_one() {  # TARGET SECONDS
  local name=$1 seconds=$2 output crashes=build-fuzz/crashes/$1 before after
  mkdir -p "build-fuzz/corpus/$name" "$crashes"
  output=build-fuzz/output-$name
  before=$(find "$crashes" -type f | wc -l)
  build-fuzz/tests/unidle_fuzz "$name" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=2560 -print_final_stats=1 \
    -artifact_prefix="$crashes/" "build-fuzz/corpus/$name" "fuzz/corpus/$name" > "$output" 2>&1 || true
  after=$(find "$crashes" -type f | wc -l)
  printf '%-16s %7s %12s %9s %9s %8s\n' "$name" "$seconds" "$(executions "$output")" \
    "$(grep INITED "$output" > "$output.first" || true; coverage "$output.first" head)" "$(coverage "$output" tail)" "$((after - before))" | tee -a build-fuzz/log
  rm -f "$output.first"
  if [ "$after" -ne "$before" ] || ! grep -q '^Done ' "$output"; then
    failed+=("$name")
    grep -E 'ERROR|runtime error|what\(\)|SUMMARY' "$output" | head -n 5 >&2 || true
  fi
}

clang=$(find_clang)
build
targets=("$@")
if [ ${#targets[@]} -eq 0 ]; then
  mapfile -t targets < <(build-fuzz/tests/unidle_fuzz || true)
fi
# Readers that need files get them in memory.
if [ -w /dev/shm ]; then TMPDIR=$(mktemp -d /dev/shm/unidle-fuzz-XXXXXX); else TMPDIR=$(mktemp -d); fi
export TMPDIR
trap 'rm -rf "$TMPDIR"' EXIT
failed=()
seconds=$(( minutes * 60 / ${#targets[@]} ))
printf '%-16s %7s %12s %9s %9s %8s\n' target seconds executions coverage after crashes
for name in "${targets[@]}"; do
  fuzz_one "$name" "$(( seconds > 0 ? seconds : 1 ))"
done
if [ ${#failed[@]} -gt 0 ]; then
  echo "fuzz: inputs that broke ${failed[*]} lie in build-fuzz/crashes, what was said in build-fuzz/output-TARGET" >&2
  exit 1
fi
