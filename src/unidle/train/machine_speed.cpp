#include "unidle/train/machine_speed.h"

#include <ATen/ATen.h>
#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <torch/version.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <string>

#include "unidle/base/clock.h"
#include "unidle/base/error.h"
#include "unidle/base/json.h"
#include "unidle/base/terminal.h"
#include "unidle/train/device.h"

namespace unidle::train {

using nlohmann::json;

namespace {

constexpr int kLaunches = 1000;
constexpr std::int64_t kSmaller = 4;  // divisor of the side for a first, small product

/// Mean seconds of one call: one warm-up, then repeats for `limit_s`, synchronizing before and after.
double time_of(at::Device device, double limit_s, const std::function<void()>& work) {
  work();
  synchronize(device);
  Clock& clock = system_clock();
  // Synchronizing after every call would dominate: double the calls per measurement until one takes long enough.
  for (std::int64_t calls = 1;; calls *= 2) {
    const std::int64_t start = clock.now_ns();
    for (std::int64_t i = 0; i < calls; ++i) {
      work();
    }
    synchronize(device);
    const double passed_s = seconds(clock.now_ns() - start);
    if (passed_s >= limit_s / 2 || calls >= (std::int64_t{1} << 24)) {
      return passed_s / static_cast<double>(calls);
    }
  }
}

/// One product has 2 n^3 operations.
double product_tflops(at::Device device, at::ScalarType dtype, std::int64_t size, double limit_s) {
  const at::NoGradGuard no_grad;
  const at::Tensor a = at::randn({size, size}, at::TensorOptions().device(device)).to(dtype);
  const at::Tensor b = at::randn({size, size}, at::TensorOptions().device(device)).to(dtype);
  at::Tensor out = at::empty({size, size}, a.options());
  const double call_s = time_of(device, limit_s, [&] { at::mm_out(out, a, b); });
  const auto n = static_cast<double>(size);
  return 2 * n * n * n / call_s * 1e-12;
}

/// A CPU that emulates a format takes seconds for one full-size product; a small one shows that as well.
json matmul_tflops(at::Device device, at::ScalarType dtype, std::int64_t size, double limit_s) {
  try {
    const std::int64_t small = std::max<std::int64_t>(size / kSmaller, 1);
    const double rate = product_tflops(device, dtype, small, limit_s / 4);
    const auto n = static_cast<double>(size);
    const bool slow = 2 * n * n * n / (rate * 1e12) > limit_s;
    return slow ? rate : product_tflops(device, dtype, size, limit_s);
  } catch (const std::exception&) {
    return nullptr;  // this device or build of torch does not support this product
  }
}

json copy_rate(at::Device device, bool pinned, std::int64_t bytes, double limit_s) {
  try {
    const at::Tensor source = at::zeros({bytes}, at::TensorOptions().dtype(at::kByte)).fill_(1);
    const at::Tensor host = pinned ? source.pin_memory() : source;
    at::Tensor target = at::empty({bytes}, at::TensorOptions().dtype(at::kByte).device(device));
    const double call_s = time_of(device, limit_s, [&] { target.copy_(host, /*non_blocking=*/pinned); });
    return static_cast<double>(bytes) / call_s;
  } catch (const std::exception&) {
    return nullptr;
  }
}

/// The cost of a call with almost no work: on a GPU a kernel launch, on a CPU torch's own dispatch.
double launch_s(at::Device device) {
  const at::NoGradGuard no_grad;
  at::Tensor value = at::zeros({1}, at::TensorOptions().device(device));
  value.add_(1);
  synchronize(device);
  const std::int64_t start = system_clock().now_ns();
  for (int i = 0; i < kLaunches; ++i) {
    value.add_(1);
  }
  synchronize(device);
  return seconds(system_clock().now_ns() - start) / kLaunches;
}

json measure_cpu(const MachineSpeedOptions& options) {
  const std::int64_t size = options.size > 0 ? options.size : 1024;
  const at::Device cpu(at::kCPU);
  return {{"device", "cpu"},
          {"threads", at::get_num_threads()},
          {"matmul_size", size},
          {"matmul_tflops",
           {{"fp32", matmul_tflops(cpu, at::kFloat, size, options.seconds)},
            {"bf16", matmul_tflops(cpu, at::kBFloat16, size, options.seconds)},
            {"fp16", matmul_tflops(cpu, at::kHalf, size, options.seconds)}}},
          {"launch_s", launch_s(cpu)}};
}

json measure_gpu(at::Device gpu, const MachineSpeedOptions& options) {
  const std::int64_t size = options.size > 0 ? options.size : 8192;
  json entry = {{"device", gpu.str()}, {"matmul_size", size}};
  at::Context& context = at::globalContext();
  context.setFloat32MatmulPrecision("highest");
  entry["matmul_tflops"]["fp32"] = matmul_tflops(gpu, at::kFloat, size, options.seconds);
  context.setFloat32MatmulPrecision("high");
  entry["matmul_tflops"]["tf32"] = matmul_tflops(gpu, at::kFloat, size, options.seconds);
  context.setFloat32MatmulPrecision("highest");
  entry["matmul_tflops"]["bf16"] = matmul_tflops(gpu, at::kBFloat16, size, options.seconds);
  entry["matmul_tflops"]["fp16"] = matmul_tflops(gpu, at::kHalf, size, options.seconds);
  entry["copy_pinned_bytes_s"] = copy_rate(gpu, true, options.copy_bytes, options.seconds);
  entry["copy_pageable_bytes_s"] = copy_rate(gpu, false, options.copy_bytes, options.seconds);
  entry["launch_s"] = launch_s(gpu);
  return entry;
}

}  // namespace

json measure_machine(const MachineSpeedOptions& options) {
  at::set_num_threads(usable_cpus());
  json answer = {{"torch", TORCH_VERSION}, {"devices", json::array()}};
  answer["devices"].push_back(measure_cpu(options));
  const at::Device device = choose_device("auto");
  if (device.is_cuda()) {
    answer["devices"].push_back(measure_gpu(device, options));
  }
  return answer;
}

int speed_main(int argc, char** argv) {
  const bool json_asked = argc == 2 && std::strcmp(argv[0], "--format") == 0 && std::strcmp(argv[1], "json") == 0;
  if (argc != 0 && !json_asked) {
    throw Error(ErrorCode::kUsage, "speed", "takes no argument but --format json",
                "unidle check --speed prints it all");
  }
  print_to(stdout, "{}\n", json_text(measure_machine()));
  return 0;
}

}  // namespace unidle::train
