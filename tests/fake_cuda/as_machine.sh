# Sourced: makes this shell's programs see a machine with pretend GPUs, with driver and nvidia-smi.
#   UNIDLE_LIB=build/lib; . tests/fake_cuda/as_machine.sh; as_machine FOLDER [GPUS]; with_gpu COMMAND...
# FOLDER gets the driver's answers and the devices' logs.
as_machine() {
  local here gpu
  here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
  mkdir -p "$1/bin"
  pretend=$(cd "$1" && pwd) pretend_gpus=${2:-1}
  head -c $((16 * pretend_gpus)) /dev/zero >"$pretend/busy"
  ln -sf "$here/nvidia_smi.py" "$pretend/bin/nvidia-smi"
  cat >"$pretend/nvml" <<SCRIPT
count $pretend_gpus
driver 580.00
cuda 13000
name pretend_GPU
capability 9.0
memory 80000000000:12000000000
utilisation busy:$pretend/busy
power 350000
power_limit 700000
power_default 700000
clock 1900
max_clock 1980
temperature 50
throttle 0
pcie 5:16:5:16
processes none
mig 0
SCRIPT
  for ((gpu = 0; gpu < pretend_gpus; ++gpu)); do
    printf '%d.uuid GPU-%08x-0000-4000-8000-000000000000\n%d.pci 0:%d:0\n' $gpu $((gpu + 1)) $gpu $((gpu + 16))
  done >>"$pretend/nvml"
}

# The devices exist only for this command. They are slow, so that even a busy host keeps them full.
with_gpu() {
  env UNIDLE_FAKE_CUDA="${UNIDLE_FAKE_CUDA:-devices=$pretend_gpus half_tflops=160 tf32_tflops=80 fp32_tflops=10 memory_gbs=400}" \
    LD_PRELOAD="$UNIDLE_LIB/libunidle_fake_cuda.so" PATH="$pretend/bin:$PATH" \
    UNIDLE_ASSUME_DEVICE=1 UNIDLE_FORCE_CUDA=1 UNIDLE_FAKE_CUDA_BUSY="$pretend/busy" \
    UNIDLE_NVML_LIBRARY="$UNIDLE_LIB/libunidle_fake_nvml.so" UNIDLE_FAKE_NVML_SCRIPT="$pretend/nvml" "$@"
}
