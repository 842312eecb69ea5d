#include "unidle/trace/summary.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <limits>
#include <random>

#include "unidle/base/error.h"
#include "unidle/trace/detail/ranges.h"
#include "unidle/trace/document.h"

namespace unidle::trace {
namespace {

using ::testing::HasSubstr;

std::string event(std::string_view category, std::string_view name, double begin, double duration, int thread = 1,
                  std::string_view args = "{}") {
  return fmt::format(R"({{"ph":"X","cat":"{}","name":"{}","pid":7,"tid":{},"ts":{},"dur":{},"args":{}}})", category,
                     name, thread, begin, duration, args);
}

TraceSummary read(std::string_view bytes) {
  logs::Source source("trace.json", bytes);
  return read_trace(source);
}

/// Two steps of 100 us: 40 us of input, then kernels on two streams that overlap.
std::string two_steps() {
  std::string events;
  for (const double begin : {1000.0, 1100.0}) {
    events += event("user_annotation", begin < 1100 ? "ProfilerStep#5" : "ProfilerStep#6", begin, 100) + ",";
    events += event("gpu_user_annotation", "ProfilerStep#5", begin + 50, 40, 0) + ",";
    events += event("cpu_op", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", begin, 40) + ",";
    events += event("cuda_runtime", "cudaStreamSynchronize", begin + 80, 10) + ",";
    events += event("cpu_op", "Optimizer.step#AdamW.step", begin + 75, 10) + ",";
    events += event("kernel", "gemm", begin + 50, 20, 7, R"({"device":0,"stream":7})") + ",";
    events += event("kernel", "add", begin + 60, 20, 8, R"({"device":0,"stream":8})") + ",";
    events += event("gpu_memcpy", "Memcpy HtoD", begin + 85, 5, 7, R"({"device":0})") + ",";
  }
  events += R"({"ph":"M","name":"process_name","pid":7,"args":{"name":"python"}})";
  return R"({"schemaVersion":1,"deviceProperties":[{"id":0,"name":"NVIDIA A30","totalGlobalMem":25000000000,)"
         R"("computeMajor":8,"computeMinor":0}],"traceEvents":[)" +
         events + R"(],"traceName":"x.json"})";
}

TEST(Trace, BusyIsTheUnionOfIntervals) {
  const TraceSummary trace = read(two_steps());
  ASSERT_EQ(trace.devices.size(), 1U);
  EXPECT_NEAR(trace.window_s, 200e-6, 1e-12);
  EXPECT_NEAR(trace.devices.front().busy_s, 2 * 35e-6, 1e-12);
  EXPECT_EQ(trace.kernel_count, 4);
  EXPECT_EQ(trace.kernels.size(), 2U);
  EXPECT_NEAR(trace.kernels[0].total_s, 40e-6, 1e-12);
}

TEST(Trace, LongestGapAndWhatTheHostDid) {
  const TraceSummary trace = read(two_steps());
  ASSERT_FALSE(trace.gaps.empty());
  EXPECT_NEAR(trace.gaps.front().seconds, 60e-6, 1e-12);  // from the copy of one step to the kernels of the next
  EXPECT_NEAR(trace.gaps.front().begin_s, 90e-6, 1e-12);
}

TEST(Trace, TheShortestHostEventThatSpansAGapNamesIt) {
  const std::string events = event("kernel", "gemm", 1000, 10, 7, R"({"device":0,"stream":7})") + "," +
                             event("kernel", "gemm", 1500, 10, 7, R"({"device":0,"stream":7})") + "," +
                             event("cpu_op", "epoch", 900, 700) + "," + event("cpu_op", "reads a file", 1020, 470) +
                             "," + event("cpu_op", "opens it", 1030, 100);
  const TraceSummary trace = read(R"({"traceEvents":[)" + events + "]}");
  ASSERT_EQ(trace.gaps.size(), 1U);
  EXPECT_EQ(trace.gaps[0].host, "reads a file");
}

TEST(Trace, PartsOfStepsSumToOne) {
  const TraceSummary trace = read(two_steps());
  ASSERT_TRUE(trace.parts);
  EXPECT_EQ(trace.step_s.count, 2);
  EXPECT_NEAR(trace.parts->input, 0.4, 1e-9);
  EXPECT_NEAR(trace.parts->sync, 0.1, 1e-9);
  EXPECT_NEAR(trace.parts->optimizer, 0.05, 1e-9);  // the wait inside it counts as wait
  EXPECT_NEAR(trace.parts->rest, 0.45, 1e-9);
  EXPECT_EQ(trace.loader_in_process, true);
  EXPECT_EQ(trace.capability, "8.0");
  EXPECT_NEAR(*trace.syncs_per_step, 1, 1e-9);
}

TEST(Trace, ABareArrayOfEvents) {
  const TraceSummary trace = read("[" + event("kernel", "gemm", 0, 10) + "," + event("kernel", "gemm", 30, 10) + "]");
  EXPECT_NEAR(trace.devices.front().busy_s, 20e-6, 1e-12);
  EXPECT_NEAR(trace.window_s, 40e-6, 1e-12);
  EXPECT_FALSE(trace.parts);
}

TEST(Trace, WithoutADevice) {
  const TraceSummary trace = read("[" + event("cpu_op", "aten::add", 0, 10) + "]");
  EXPECT_TRUE(trace.devices.empty());
  EXPECT_EQ(trace.busiest(), nullptr);
}

TEST(Trace, DevicesOfOtherProfilersAreNamed) {
  const auto process = [](std::string_view name) {
    return fmt::format(R"({{"ph":"M","name":"process_name","pid":7,"args":{{"name":"{}"}}}},)", name);
  };
  const std::string work = R"({"ph":"X","name":"fusion.1","pid":7,"tid":1,"ts":10,"dur":5})";
  try {
    read("[" + process("/host:CPU") + process("/device:TPU:0\\n") + work + "]");
    FAIL() << "a trace of JAX was read";
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), 2);
    EXPECT_NE(std::string(error.what()).find("/device:TPU:0"), std::string::npos) << error.what();
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
  }
  // torch's operators are worth reading all the same.
  EXPECT_EQ(read("[" + process("MTIA 9") + event("cpu_op", "aten::mm", 0, 10) + "," + work + "]").unread_device,
            "MTIA 9");
  EXPECT_EQ(read("[" + process("GPU 0") + event("cpu_op", "aten::mm", 0, 10) + "]").unread_device, "");
}

TEST(Trace, DamagedOnesAreRefused) {
  const std::string whole = two_steps();
  for (const std::string& bytes :
       {whole.substr(0, whole.size() / 2), std::string("{}"), std::string("[]"), std::string("{\"traceEvents\":[}"),
        std::string("{\"traceEvents\":[]}"), std::string(""), std::string("[[[[")}) {
    try {
      read(bytes);
      FAIL() << "nothing was noticed in " << bytes.substr(0, 40);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInput);
      EXPECT_EQ(error.subject(), "trace.json");
    }
  }
}

TEST(Trace, OddEventsDoNotDisturb) {
  const TraceSummary trace = read(
      R"({"traceEvents":[{"ph":"X","name":"k","cat":"kernel","ts":"10","dur":"5","pid":0,"tid":7,"args":{"device":0,"a":[1,{"ts":3}]}},)"
      R"({"ph":"X","name":1,"cat":null,"ts":-1e300,"dur":1e308},{"ph":"X"},[],3,"x",null,{"ph":"X","ts":1,"dur":-5}]})");
  EXPECT_NEAR(trace.kernel_s, 5e-6, 1e-12);
}

TEST(Trace, CopiesByKindWithTheirBytes) {
  const TraceSummary trace =
      read("[" + event("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", 0, 10, 7, R"({"device":0,"bytes":1000})") +
           "," + event("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", 20, 10, 7, R"({"device":0,"bytes":500})") +
           "," + event("gpu_memset", "Memset (Device)", 40, 5, 7, R"({"device":0})") + "]");
  ASSERT_EQ(trace.copies.size(), 2U);
  EXPECT_EQ(trace.copies[0].kind, "HtoD (Pageable -> Device)");
  EXPECT_EQ(trace.copies[0].count, 2);
  EXPECT_DOUBLE_EQ(trace.copies[0].bytes, 1500);
  EXPECT_NEAR(trace.copies[1].total_s, 5e-6, 1e-12);
  EXPECT_FALSE(trace.matrix_share());  // no kernel: not zero
}

TEST(Trace, OperatorsByTheTimeOfTheirOwn) {
  const TraceSummary trace =
      read("[" + event("cpu_op", "aten::linear", 0, 100) + "," + event("cpu_op", "aten::addmm", 10, 60) + "," +
           event("cpu_op", "aten::copy_", 20, 10) + "," + event("cpu_op", "aten::linear", 0, 30, 2) + "]");
  ASSERT_EQ(trace.operators.size(), 3U);
  EXPECT_EQ(trace.operators[0].name, "aten::linear");
  EXPECT_EQ(trace.operators[0].count, 2);
  EXPECT_NEAR(trace.operators[0].self_s, 70e-6, 1e-12);  // 40 of its own on one thread, 30 on the other
  EXPECT_NEAR(trace.operators[1].self_s, 50e-6, 1e-12);
  EXPECT_NEAR(trace.operators[2].self_s, 10e-6, 1e-12);
}

TEST(Trace, AnOperatorThatOutlivesItsParentTakesOnlyTheSharedTime) {
  const TraceSummary trace =
      read("[" + event("cpu_op", "aten::linear", 0, 100) + "," + event("cpu_op", "aten::addmm", 90, 40) + "]");
  ASSERT_EQ(trace.operators.size(), 2U);
  EXPECT_NEAR(trace.operators[0].self_s, 90e-6, 1e-12);
  EXPECT_NEAR(trace.operators[1].self_s, 40e-6, 1e-12);
}

TEST(Trace, ACopyCallThatWaitsForKernelsWaitsForTheDevice) {
  const TraceSummary trace = read(
      "[" + event("user_annotation", "ProfilerStep#1", 0, 100) + "," +
      event("kernel", "gemm", 0, 60, 7, R"({"device":0})") + "," + event("cuda_runtime", "cudaMemcpyAsync", 20, 60) +
      "," + event("gpu_memcpy", "Memcpy DtoH (Device -> Pageable)", 60, 15, 7, R"({"device":0})") + "]");
  EXPECT_NEAR(trace.parts->sync, 0.4, 1e-9);
  EXPECT_NEAR(trace.parts->transfer, 0.2, 1e-9);
}

TEST(Trace, LaunchesAreCounted) {
  const TraceSummary trace =
      read("[" + event("cuda_runtime", "cudaLaunchKernel", 0, 5) + "," +
           event("cuda_driver", "cuLaunchKernelEx", 10, 7) + "," + event("cuda_runtime", "cudaGetDevice", 20, 7) + "]");
  EXPECT_EQ(trace.launches, 2);
  EXPECT_NEAR(trace.launch_s, 12e-6, 1e-12);
}

TEST(Trace, WhatTorchItselfWritesIsRead) {
  std::string bytes = two_steps();
  const std::string label = "\"name\":\"Optimizer.step#AdamW.step\"";
  bytes.replace(bytes.find(label), label.size(), "\"name\":\"block \"encoder\" of C:\\Users\n\xff\",\"x\":NaN");
  const TraceSummary trace = read(bytes);
  EXPECT_EQ(trace.step_s.count, 2);
  EXPECT_EQ(trace.kernel_count, 4);
}

TEST(Trace, BeginAndEndEventsAreSlices) {
  const auto edge = [](std::string_view phase, std::string_view category, std::string_view name, double at,
                       int thread = 1, std::string_view args = "{}") {
    return fmt::format(R"({{"ph":"{}","cat":"{}","name":"{}","pid":7,"tid":{},"ts":{},"args":{}}})", phase, category,
                       name, thread, at, args);
  };
  const TraceSummary trace =
      read("[" + edge("E", "", "", 1) + "," + edge("B", "user_annotation", "ProfilerStep#1", 0) + "," +
           edge("B", "cpu_op", "aten::mm", 10) + "," + edge("B", "kernel", "gemm", 20, 7, R"({"device":0})") + "," +
           edge("E", "", "", 40) + "," + edge("E", "", "", 70, 7) + "," + edge("E", "", "ProfilerStep#1", 100) + "]");
  EXPECT_EQ(trace.step_s.count, 1);
  EXPECT_NEAR(*trace.busy(), 0.5, 1e-9);
  ASSERT_EQ(trace.operators.size(), 1U);
  EXPECT_NEAR(trace.operators[0].self_s, 30e-6, 1e-12);
}

TEST(Trace, RowsOfCudaFunctionsAreTheDevices) {
  std::string events;
  for (const int i : {0, 1, 2, 3}) {
    events += fmt::format(R"({}{{"name":"aten::mul","ph":"X","ts":{},"dur":60,"tid":1,"pid":"CPU functions"}},)",
                          i == 0 ? "" : ",", 150 * i + 1);
    events +=
        fmt::format(R"({{"name":"aten::mul","ph":"X","ts":{},"dur":30,"tid":0,"pid":"CUDA functions"}})", 150 * i + 50);
  }
  const TraceSummary trace = read("[" + events + "]");
  ASSERT_EQ(trace.devices.size(), 1U);
  EXPECT_EQ(trace.devices[0].id, "0");
  EXPECT_NEAR(trace.devices[0].busy_s, 120e-6, 1e-12);
  ASSERT_EQ(trace.operators.size(), 1U);
  EXPECT_EQ(trace.operators[0].count, 4);
}

TEST(Trace, AKernelEndsWhereTheNextOfItsStreamBegins) {
  const TraceSummary trace = read("[" + event("kernel", "a", 100, 1e9, 7, R"({"device":0})") + "," +
                                  event("kernel", "b", 150, 10, 7, R"({"device":0})") + "," +
                                  event("kernel", "c", 120, 30, 8, R"({"device":0})") + "," +
                                  event("kernel", "d", 200, 10, 7, R"({"device":0})") + "]");
  EXPECT_NEAR(trace.window_s, 110e-6, 1e-12);
  EXPECT_NEAR(trace.devices[0].busy_s, 70e-6, 1e-12);
  EXPECT_NEAR(trace.kernel_s, (50 + 10 + 30 + 10) * 1e-6, 1e-12);
}

TEST(Trace, EventsWithoutATimeAreLeftOut) {
  const double base = 1.6e15;
  for (const auto& [begin, length] : {std::pair(0.0, 0.0), std::pair(0.0, base + 5), std::pair(-base, 0.0)}) {
    const TraceSummary trace =
        read("[" + event("kernel", "lost", begin, length, 7, R"({"device":0})") + "," +
             event("kernel", "a", base, 10, 7, R"({"device":0})") + "," + event("cpu_op", "lost", begin, length) + "," +
             event("kernel", "b", base + 20, 20, 7, R"({"device":0})") + "]");
    EXPECT_NEAR(trace.span_s, 40e-6, 1e-9) << begin << " " << length;
    EXPECT_EQ(trace.kernel_count, 2);
  }
  // A trace that begins at zero keeps its first events.
  EXPECT_EQ(read("[" + event("kernel", "a", 0, 10) + "," + event("kernel", "b", 20, 10) + "]").kernel_count, 2);
}

TEST(Trace, ExchangeThatNoKernelHides) {
  const TraceSummary trace =
      read("[" + event("kernel", "gemm", 0, 40, 7, R"({"device":0})") + "," +
           event("kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", 20, 50, 8, R"({"device":0})") + "," +
           event("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 60, 40, 9, R"({"device":0})") + "]");
  EXPECT_NEAR(trace.communication_s, 50e-6, 1e-12);
  EXPECT_NEAR(trace.communication_alone_s, 30e-6, 1e-12);
  EXPECT_NEAR(trace.copying_s, 40e-6, 1e-12);
  EXPECT_NEAR(trace.copying_alone_s, 30e-6, 1e-12);
}

/// One kernel of 1 ms, then a gap of `gap_us` whose last moment launches the next kernel, and what the host does
/// meanwhile.
TraceSummary after_a_gap(double gap_us, std::string_view host) {
  const double next = 1000 + gap_us;
  return read("[" + event("cuda_runtime", "cudaLaunchKernel", -10, 5, 1, R"({"correlation":1})") + "," +
              event("cpu_op", "aten::mm", -20, 15) + "," +
              event("kernel", "a", 0, 1000, 7, R"({"device":0,"correlation":1})") + "," + std::string(host) +
              event("cuda_runtime", "cudaLaunchKernel", next - 10, 5, 1, R"({"correlation":2})") + "," +
              event("kernel", "b", next, 1000, 7, R"({"device":0,"correlation":2})") + "]");
}

TEST(Idle, WhatTheHostDidBeforeItLaunchedOn) {
  const auto idle = [](std::string_view category, std::string_view name, double begin, double length,
                       double gap = 5000) {
    const TraceSummary trace = after_a_gap(gap, event(category, name, begin, length) + ",");
    EXPECT_NEAR(trace.idle->idle_s, gap * 1e-6, 1e-12);
    double sum = 0;
    for (const IdleCause& cause : causes_of(*trace.idle)) {
      sum += cause.seconds;
    }
    EXPECT_NEAR(sum, trace.idle->idle_s, 1e-12) << name;
    return *trace.idle;
  };
  EXPECT_NEAR(
      idle("user_annotation", "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", 500, 4500).input_s, 4e-3,
      1e-9);
  EXPECT_NEAR(idle("cuda_runtime", "cudaMalloc", 1000, 4000).allocator_s, 4e-3, 1e-9);
  EXPECT_NEAR(idle("cpu_op", "_compile.compile_inner (dynamo_timed)", 1000, 4000).compile_s, 4e-3, 1e-9);
  EXPECT_NEAR(idle("cuda_driver", "cuModuleLoadData", 1000, 4000).compile_s, 4e-3, 1e-9);
  EXPECT_NEAR(idle("cuda_runtime", "cudaMemcpyAsync", 1000, 4000).copy_s, 4e-3, 1e-9);
  EXPECT_NEAR(idle("cpu_op", "aten::sort", 1000, 4000).host_s, 4.99e-3, 1e-9);
  EXPECT_NEAR(idle("python_function", "train.py(7): tokenize", 1000, 4000).host_s, 4.99e-3, 1e-9);
  EXPECT_NEAR(idle("cuda_runtime", "cudaDeviceSynchronize", 500, 600).host_s, 4.89e-3, 1e-9);  // what came after it
  // A short pause is the cost of a launch, or of a wait that left nothing queued.
  EXPECT_NEAR(idle("cpu_op", "aten::add", 1000, 100, 500).launch_s, 500e-6, 1e-9);
  EXPECT_NEAR(idle("cuda_runtime", "cudaStreamSynchronize", 500, 600, 500).sync_s, 490e-6, 1e-9);
}

TEST(Idle, APauseWithoutAnEventHasNoName) {
  const IdleTime silent = *after_a_gap(5000, "").idle;
  EXPECT_NEAR(silent.host_s, 4.99e-3, 1e-9);
  EXPECT_NEAR(silent.unnamed_s, 4.99e-3, 1e-9);
  EXPECT_EQ(causes_of(silent).front().name, "host not recorded");
  // An event of any thread names the time that it takes.
  const IdleTime named = *after_a_gap(5000, event("cpu_op", "aten::sort", 1000, 4000, 2) + ",").idle;
  EXPECT_NEAR(named.unnamed_s, 0.99e-3, 1e-9);
  EXPECT_EQ(causes_of(named).front().name, "other host work");
}

TEST(Idle, ALaunchThatGoesOnWhileTheDeviceIdlesLoadsAKernel) {
  const auto idle = [](double length) {
    return *after_a_gap(5000, event("cuda_runtime", "cudaLaunchKernel", 500, length) + ",").idle;
  };
  EXPECT_NEAR(idle(4500).compile_s, 4e-3, 1e-9);
  EXPECT_EQ(idle(900).compile_s, 0);
}

TEST(Idle, OnTheThreadThatLaunches) {
  // The loop waits for input while another thread prints: the device waits for input.
  const TraceSummary trace = after_a_gap(
      5000, event("python_function", "print", 1000, 5000, 2) + "," +
                event("user_annotation", "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", 1000, 4900) +
                ",");
  EXPECT_NEAR(trace.idle->input_s, 4.9e-3, 1e-9);
}

TEST(Idle, WorkThatWasQueuedIsNoLaunch) {
  const TraceSummary trace = read("[" + event("cuda_runtime", "cudaGraphLaunch", 0, 5, 1, R"({"correlation":1})") +
                                  "," + event("kernel", "a", 10, 100, 7, R"({"device":0,"correlation":1})") + "," +
                                  event("kernel", "b", 150, 100, 7, R"({"device":0,"correlation":1})") + "]");
  EXPECT_NEAR(trace.idle->queued_s, 40e-6, 1e-12);
}

TEST(Idle, WithoutTheHostNothingIsSaid) {
  const TraceSummary trace = read("[" + event("kernel", "a", 0, 100) + "," + event("kernel", "b", 5000, 100) + "]");
  EXPECT_NEAR(trace.idle->unseen_s, 4.9e-3, 1e-9);
  EXPECT_EQ(trace.idle->unnamed_s, 0);
}

TEST(Trace, TheWindowHoldsWhatItsStepsLaunched) {
  const TraceSummary trace = read("[" + event("user_annotation", "ProfilerStep#1", 0, 100) + "," +
                                  event("cuda_runtime", "cudaLaunchKernel", 10, 5, 1, R"({"correlation":1})") + "," +
                                  event("cuda_runtime", "cudaLaunchKernel", 500, 5, 1, R"({"correlation":2})") + "," +
                                  event("kernel", "a", 20, 180, 7, R"({"device":0,"correlation":1})") + "," +
                                  event("kernel", "later", 600, 10, 7, R"({"device":0,"correlation":2})") + "]");
  EXPECT_NEAR(trace.window_s, 200e-6, 1e-12);
  EXPECT_NEAR(*trace.busy(), 0.9, 1e-9);
}

TEST(Trace, TheClockMarkWithLeastDelayTiesItToTheRecord) {
  const TraceSummary trace = read("[" + event("user_annotation", "unidle.clock.5000000", 4000, 1) + "," +
                                  event("user_annotation", "unidle.clock.9000000", 7500, 1) + "," +
                                  event("user_annotation", "unidle.clock.x", 1, 1) + "]");
  EXPECT_EQ(trace.zero_ns, 9000000 - 7500000);
  EXPECT_FALSE(read(two_steps()).zero_ns);
}

TEST(KernelNames, MatrixUnits) {
  for (const char* name :
       {"volta_h884gemm_64x64_ldg8_nn", "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_32x5_tn",
        "turing_fp16_s1688cudnn_fp16_128x128_ldg8_relu_f2f_exp_medium_nhwc_gelu_tn_v1",
        "sm80_xmma_fprop_implicit_gemm_indexed_tf32f32_tf32f32_f32_nhwckrsc_nchw_tilesize128x128x16_stage4",
        "nvjet_hsh_256x128_64x4_1x2_h_bz_coopA_NNT", "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize64x128x64",
        "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_256x128_32x3_nn_align8>(...)",
        "void flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128, 128, 4>>(Flash_fwd_params)",
        "Cijk_Alik_Bljk_SB_Bias_AS_SAV_UserArgs_MT64x16x32_MI16x16x1_SN"}) {
    EXPECT_TRUE(uses_matrix_units(name)) << name;
  }
  for (const char* name :
       {"volta_sgemm_64x64_nt", "ampere_sgemm_32x32_sliced1x4_tn", "cudnn_infer_volta_scudnn_128x64_relu_medium_nn_v1",
        "sm80_xmma_gemm_f32f32_f32f32_f32_nn_n_tilesize32x32x8_stage3_warpsize1x2x1_ffma_aligna4_alignc4_execute",
        "void cutlass::Kernel2<cutlass_80_simt_sgemm_128x64_8x5_nt_align1>(...)",
        "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>",
        "triton_poi_fused_add_0", "ampere_gcgemm_64x64_nt", ""}) {
    EXPECT_FALSE(uses_matrix_units(name)) << name;
  }
}

TEST(KernelNames, Exchange) {
  for (const char* name : {"ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
                           "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t", "mscclKernel_Sum_half_Simple_false",
                           "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 2>(...)"}) {
    EXPECT_TRUE(is_communication(name)) << name;
  }
  for (const char* name : {"ampere_sgemm_128x64_tn", "void at::native::reduce_kernel<512, 1, ...>", ""}) {
    EXPECT_FALSE(is_communication(name)) << name;
  }
}

TEST(TraceDocument, ComesBackWhole) {
  TraceSummary trace = read(two_steps());
  trace.communication_alone_s = 1e-5;
  trace.rank = 3;
  trace.copies.front().bytes = 12;
  trace.operators.push_back({"aten::add", 3, 0.5});
  trace.zero_ns = -5;
  const nlohmann::json document = to_json(trace);
  EXPECT_EQ(to_json(summary_from_json(document, "x")), document);
  EXPECT_EQ(to_text(summary_from_json(document, "x"), 100), to_text(trace, 100));
}

TEST(TraceDocument, DamagedOnesAreRefused) {
  nlohmann::json document = to_json(read(two_steps()));
  document["kernels"][0]["count"] = "many";
  for (const nlohmann::json& bad : {document, nlohmann::json(), nlohmann::json::object(), nlohmann::json::array()}) {
    try {
      summary_from_json(bad, "run");
      FAIL() << "nothing was noticed in " << bad.dump();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kCorrupt);
    }
  }
}

TEST(TraceText, TwoTracesBesideEachOther) {
  const TraceSummary before = read(two_steps());
  TraceSummary after = before;
  after.file = "after.json";
  after.kernels.pop_back();
  after.communication_alone_s = 20e-6;
  const std::string text = comparison_text(before, after, 100);
  EXPECT_THAT(text, HasSubstr("of a step"));
  EXPECT_THAT(text, HasSubstr("100.0 us    100.0 us  +0.0 us (1.00x)"));  // the window
  EXPECT_THAT(text, HasSubstr("0.0 us     10.0 us  +10.0 us\n"));         // the exchange
  EXPECT_THAT(text, HasSubstr("20.0 us          -  gemm"));               // not among the longest: a dash, not zero
  EXPECT_THAT(comparison_text(after, read("[" + event("kernel", "a", 0, 10) + "]"), 100), HasSubstr("of the window"));
}

TEST(GatheredRanges, JoinRangesOfAnyOrder) {
  detail::GatheredRanges gathered;
  std::vector<TimeRange> all;
  std::mt19937_64 random(1);
  for (int i = 0; i < 200'000; ++i) {  // joined on the way
    const auto begin_ns = static_cast<std::int64_t>(random() % 100'000'000);
    all.push_back({begin_ns, begin_ns + static_cast<std::int64_t>(random() % 1000) - 3});
    gathered.add(all.back());
  }
  const TimeRanges expected(all);
  ASSERT_EQ(gathered.joined().all().size(), expected.all().size());
  EXPECT_EQ(gathered.joined().total_ns(), expected.total_ns());
  EXPECT_EQ(detail::intersection(expected, TimeRanges({{0, 50'000'000}})).total_ns(),
            expected.overlap_ns(0, 50'000'000));
}

TEST(TraceTimes, AreKeptToTheNanosecond) {
  for (const double us : {0.0, 0.001, 12.345, 5211839842.123, 1'700'000'000'000'000.25, -3.5}) {
    EXPECT_EQ(detail::to_us(detail::to_ns(us)), us);
  }
  EXPECT_EQ(detail::to_ns(1'700'000'000'000'000.25), 1'700'000'000'000'000'250);
  EXPECT_EQ(detail::to_ns(1.9999), 2000);
  EXPECT_LT(detail::to_ns(1e300) - detail::to_ns(-1e300), std::numeric_limits<std::int64_t>::max());
}

}  // namespace
}  // namespace unidle::trace
