#!/usr/bin/env bash
# docs/adding-a-workload.md: its library compiles as the page says, and trains.
subcommand=
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
needs_engine
page=${UNIDLE_SOURCE:?}/docs/adding-a-workload.md
block() { awk -v fence="\`\`\`$1" '$0 == fence {inside = 1; next} /^\`\`\`/ {inside = 0} inside' "$page"; }
block cpp >regression.cpp
block yaml >regression.yaml
lines=$(wc -l <regression.cpp)
[ "$lines" -gt 40 ] && [ "$lines" -lt 100 ] || fail "the example has $lines lines"
expect 0 train --plugin-flags
flags=$(cat out)
# shellcheck disable=SC2086
c++ $flags regression.cpp -o libregression.so >compiled 2>&1 || fail "$(cat compiled)"

make_houses 2000
expect 0 train --plugin libregression.so regression.yaml --format json
rmse=$(grep -oE '"rmse": ?[0-9.e-]+' out | grep -oE '[0-9.e-]+$')
awk -v rmse="$rmse" 'BEGIN { exit !(rmse > 0 && rmse < 0.3) }' || fail "rmse '$rmse': $(cat out)"
has out '"data.on_device":true'
expect 0 train regression.yaml --plugin ./libregression.so train.samples=640 data.on_device=false

refused train regression.yaml
has err "regression.yaml:3"
refused train --plugin libregression.so regression.yaml table.tarhet=price
has err "table.target"
refused train --plugin nowhere.so regression.yaml
refused train --plugin regression.cpp regression.yaml
has err "cannot be loaded"
echo 'int something;' >empty.c
cc -shared -fPIC empty.c -o libempty.so
refused train --plugin libempty.so regression.yaml
has err "is not a library with a workload"
abi=$(strings libregression.so | grep '^unidle-workload ')
printf 'const char* unidle_plugin_abi(void) { return "%s"; }\nvoid* unidle_plugin_workload(void) { return 0; }\n' "$abi" >null.c
cc -shared -fPIC null.c -o libnull.so
refused train --plugin libnull.so regression.yaml
has err "libnull.so: is not a library with a workload: its WorkloadKind has no name"
echo 'const char* unidle_plugin_abi(void) { return "unidle-workload 0, torch 1.0"; }' >old.c
cc -shared -fPIC old.c -o libold.so
refused train --plugin libold.so regression.yaml
has err "was built for 'unidle-workload 0, torch 1.0'"
sed 's/"table.path"/"batch.size"/' regression.cpp >clash.cpp
sed -i 's/config.text("batch.size")/std::string("houses.csv")/' clash.cpp
# shellcheck disable=SC2086
c++ $flags clash.cpp -o libclash.so >compiled 2>&1 || fail "$(cat compiled)"
refused train --plugin libclash.so regression.yaml
has err "batch.size"

# An installation has the headers, too, and needs no other files of unidle.
if cmake --install "$(dirname "$UNIDLE_BIN")" --prefix "$PWD/installed" >installing 2>&1; then
  flags=$(installed/bin/unidle train --plugin-flags) || fail "the installed program gives no flags"
  [ "${flags#* -I"$PWD/installed/include "}" != "$flags" ] || fail "flags of the installed program: $flags"
  # shellcheck disable=SC2086
  c++ $flags -fsyntax-only regression.cpp >compiled 2>&1 || fail "with what is installed: $(cat compiled)"
  rm -r installed/include
  installed/bin/unidle train --plugin-flags >out 2>err
  [ $? = 3 ] || fail "without headers: $(cat out err)"
  has err "plugin.h"
else
  fail "cmake --install: $(tail -n 5 installing)"
fi
finish
