#!/usr/bin/env bash
# The archive for a machine with a GPU, unpacked without access to the build: it contains everything that its
# programs need except a Python with torch and the C library, and its one command runs.
subcommand=
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
needs_torch
needs_engine
needs_pretend_gpu "$UNIDLE_LIB/libunidle_fake_nvml.so"
. "$UNIDLE_SOURCE/tests/fake_cuda/as_machine.sh"
as_machine machine
bash "$UNIDLE_SOURCE/tools/bundle.sh" "$(dirname "$UNIDLE_BIN")" "$PWD/bundle.tar.gz" >packed 2>&1 || fail "no archive: $(cat packed)"
tar -xzf bundle.tar.gz || fail "the archive cannot be unpacked"
unset UNIDLE_BIN UNIDLE_SOURCE UNIDLE_PYTHON UNIDLE_LIBRARY PYTHONPATH

# Each library is in the archive, in torch's packages, or on every machine that runs torch.
torch=$("$python" -c 'import importlib.util as u; print(u.find_spec("torch").submodule_search_locations[0])')
for program in unidle/bin/unidle unidle/libexec/unidle-train unidle/lib/libunidle.so unidle/lib/libunidle_probe.so \
  unidle/lib/libunidle_cupti.so unidle/lib/_unidle_light.abi3.so; do
  [ -e "$program" ] || fail "the archive lacks $program"
  foreign=$(LD_LIBRARY_PATH="$torch/lib" ldd "$program" | awk '$2 == "=>"' |
    grep -vE "=> $PWD/unidle/|/torch/lib/|/nvidia/|/(libc|libm|libdl|librt|libpthread|libutil|libgcc_s|libstdc\+\+)\.so" || true)
  [ -z "$foreign" ] || fail "$program needs what is not in the archive: $foreign"
done
[ -e unidle/lib/libunidle_cuda.so ] || fail "the archive lacks libunidle_cuda.so"

unidle/gpu_suite "$python" none >out 2>err || fail "without a GPU: exit code $?: $(cat out err)"
has out "skipped  parity"
lacks out fails
with_gpu unidle/gpu_suite "$python" some --only answers check-smi fork driver >out 2>err ||
  fail "with a pretend GPU: exit code $?: $(cat out err)"
[ "$(grep -c '^holds' out)" = 5 ] || fail "not all hold: $(cat out err)"
finish
