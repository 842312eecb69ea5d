#include "unidle/trace/detail/flops.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "unidle/trace/document.h"
#include "unidle/trace/summary.h"

namespace unidle::trace {
namespace {

/// An operator as the profiler writes it with record_shapes=True.
std::string operation(std::string_view name, std::string_view shapes, std::string_view values = "[]",
                      std::string_view type = "float", double begin = 1010) {
  return fmt::format(
      R"({{"ph":"X","cat":"cpu_op","name":"{}","pid":7,"tid":1,"ts":{},"dur":5,"args":{{"Concrete Inputs":{},)"
      R"("Input type":["{}","{}","{}"],"Input Strides":[[1]],"Input Dims":{}}}}})",
      name, begin, values, type, type, type, shapes);
}

TraceSummary traced(const std::string& events, std::string_view device = "NVIDIA A100-SXM4-80GB") {
  const std::string step =
      R"({"ph":"X","cat":"user_annotation","name":"ProfilerStep#5","pid":7,"tid":1,"ts":1000,"dur":100,"args":{}},)";
  const std::string bytes =
      fmt::format(R"({{"deviceProperties":[{{"id":0,"name":"{}"}}],"traceEvents":[{}{}]}})", device, step, events);
  logs::Source source("trace.json", bytes);
  return read_trace(source);
}

/// The call by which an operator launches a kernel, and the kernel.
std::string kernel(std::string_view name, double begin = 1012, std::string_view call = "cudaLaunchKernel",
                   int device = 0) {
  return fmt::format(
      R"({{"ph":"X","cat":"cuda_runtime","name":"{}","pid":7,"tid":1,"ts":{},"dur":1,"args":{{"correlation":{}}}}},)"
      R"({{"ph":"X","cat":"kernel","name":"{}","pid":0,"tid":7,"ts":{},"dur":5,"args":{{"device":{},"correlation":{}}}}})",
      call, begin, begin, name, begin + 2, device, begin);
}

double flops_of(const std::string& events) { return traced(events).flops_per_step().value_or(-1); }

constexpr const char* kForward = R"(["","","","[2, 2]","[1, 1]","[1, 1]","False","[0, 0]","1"])";

TEST(Flops, Products) {
  EXPECT_EQ(flops_of(operation("aten::mm", "[[40,32],[32,96]]")), 2.0 * 40 * 32 * 96);
  EXPECT_EQ(flops_of(operation("aten::addmm", "[[64],[40,32],[32,64],[],[]]")), 2.0 * 40 * 32 * 64);
  EXPECT_EQ(flops_of(operation("aten::bmm", "[[5,6,7],[5,7,3]]")), 2.0 * 5 * 6 * 7 * 3);
  EXPECT_EQ(flops_of(operation("aten::mm", "[[0,32],[32,96]]")), 0);
  EXPECT_EQ(flops_of(operation("aten::_grouped_mm", "[[4,8,16],[4,16,2],[],[],[]]")), 2.0 * 4 * 8 * 16 * 2);
}

// Counts of torch.utils.flop_counter for the same calls.
TEST(Flops, Convolutions) {
  EXPECT_EQ(flops_of(operation("aten::convolution", "[[4,3,32,32],[8,3,3,3],[8],[],[],[],[],[],[]]", kForward)),
            2.0 * 4 * 16 * 16 * 8 * 3 * 9);
  EXPECT_EQ(flops_of(operation("aten::convolution", "[[4,16,14,14],[16,4,3,3],[4],[],[],[],[],[],[]]",
                               R"(["","","","[2, 2]","[1, 1]","[1, 1]","True","[1, 1]","1"])")),
            2.0 * 4 * 14 * 14 * 16 * 4 * 9);
  const std::string shapes = "[[4,8,16,16],[4,3,32,32],[8,3,3,3],[],[],[],[],[],[],[],[]]";
  const auto backward = [&](std::string_view wanted) {
    return flops_of(
        operation("aten::convolution_backward", shapes,
                  fmt::format(R"(["","","","[8]","[2, 2]","[1, 1]","[1, 1]","False","[0, 0]","1","{}"])", wanted)));
  };
  EXPECT_EQ(backward("[True, True, True]"), 2 * 2.0 * 4 * 16 * 16 * 8 * 3 * 9);
  EXPECT_EQ(backward("[False, True, True]"), 2.0 * 4 * 16 * 16 * 8 * 3 * 9);
}

TEST(Flops, AttentionAndItsBackwardPass) {
  const std::string shapes = "[[2,4,16,8],[2,4,20,8],[2,4,20,8],[],[]]";
  const double forward = 2.0 * 2 * 4 * 16 * 20 * (8 + 8);
  EXPECT_EQ(flops_of(operation("aten::_scaled_dot_product_flash_attention", shapes)), forward);
  EXPECT_EQ(flops_of(operation("aten::_scaled_dot_product_flash_attention_backward",
                               "[[2,4,16,8],[2,4,16,8],[2,4,20,8],[2,4,20,8],[]]")),
            2 * forward);
  const std::string length_first = "[2,16,4,8],[2,20,4,8],[2,20,4,8]";
  EXPECT_EQ(flops_of(operation("aten::_flash_attention_forward", "[" + length_first + ",[],[],[],[]]")), forward);
  EXPECT_EQ(flops_of(operation("aten::_efficient_attention_forward", "[" + length_first + ",[],[],[]]")), forward);
  const std::string backward = "[[2,16,4,8]," + length_first + ",[],[2,16,4,8],[],[],[]]";
  EXPECT_EQ(flops_of(operation("aten::_efficient_attention_backward", backward)), 2 * forward);
  // Heads of the query share those of the key.
  EXPECT_EQ(flops_of(operation("aten::_scaled_dot_product_flash_attention", "[[2,4,16,8],[2,2,20,8],[2,2,20,8]]")),
            forward);
}

// Their begins in the batch are values, which a trace does not have.
TEST(Flops, NoneForPackedSequences) {
  EXPECT_EQ(flops_of(operation("aten::_flash_attention_forward", "[[32,4,8],[32,4,8],[32,4,8],[3],[3]]")), -1);
  EXPECT_EQ(flops_of(operation("aten::_efficient_attention_forward", "[[1,32,4,8],[1,32,4,8],[1,32,4,8],[],[3],[3]]")),
            -1);
  EXPECT_EQ(flops_of(operation("aten::_grouped_mm", "[[32,16],[4,16,2],[4],[],[]]")), -1);
  EXPECT_EQ(flops_of(operation("aten::_grouped_mm", "[[4,16,16],[16,4],[4],[],[]]")), -1);
}

TEST(Flops, RecurrentLayers) {
  EXPECT_EQ(flops_of(operation("aten::mkldnn_rnn_layer", "[[10,4,32],[64,32],[64,16],[64],[64],[4,16],[4,16],[]]")),
            2.0 * 10 * 4 * 64 * (32 + 16));
  EXPECT_EQ(flops_of(operation("aten::_cudnn_rnn", "[[10,4,32],[[64,32],[64,16],[64],[64]],[],[9000],[1,4,16]]")),
            2.0 * 10 * 4 * 64 * (32 + 16));
}

TEST(Flops, OnlyThoseInSteps) {
  EXPECT_EQ(flops_of(operation("aten::mm", "[[2,2],[2,2]]", "[]", "float", 900) + "," +
                     operation("aten::mm", "[[4,4],[4,4]]")),
            2.0 * 64);
  // Even if they cannot be counted.
  EXPECT_EQ(
      flops_of(operation("aten::mm", "[[2],[2,2]]", "[]", "float", 900) + "," + operation("aten::mm", "[[4,4],[4,4]]")),
      2.0 * 64);
}

// As einsum does under autocast: the outer one casts.
TEST(Flops, OnlyTheInnermostOfNestedOperators) {
  const auto event = [](std::string_view name, std::string_view type, double begin, double length) {
    return fmt::format(R"({{"ph":"X","cat":"cpu_op","name":"{}","pid":7,"tid":1,"ts":{},"dur":{},)"
                       R"("args":{{"Input type":["{}"],"Input Dims":[[5,6,7],[5,7,3]]}}}})",
                       name, begin, length, type);
  };
  const double once = 2.0 * 5 * 6 * 7 * 3;
  const TraceSummary cast = traced(event("aten::bmm", "float", 1010, 30) + "," + event("aten::to", "float", 1011, 5) +
                                   "," + event("aten::bmm", "c10::BFloat16", 1020, 18.5));
  ASSERT_EQ(cast.flops.size(), 1U);
  EXPECT_EQ(cast.flops.front().type, "bf16");
  EXPECT_EQ(cast.flops_per_step(), once);
  EXPECT_EQ(flops_of(event("aten::_grouped_mm", "float", 1010, 30) + "," + event("aten::bmm", "float", 1011, 5) + "," +
                     event("aten::bmm", "float", 1017, 5)),
            2 * once);
  // One after the other, although rounded times overlap.
  EXPECT_EQ(flops_of(event("aten::bmm", "float", 1010, 5.25) + "," + event("aten::bmm", "float", 1015, 5)), 2 * once);
}

TEST(Flops, NoneWhereACallCannotBeCounted) {
  const auto alone = [](std::string_view name, std::string_view shapes, std::string_view values = "[]") {
    return flops_of(operation(name, shapes, values));
  };
  EXPECT_EQ(flops_of(operation("aten::mm", "[[4,4],[4,4]]") + "," +
                     operation("aten::mm", "[[4],[4,4]]", "[]", "float", 1020)),
            -1);
  EXPECT_EQ(alone("aten::relu", "[[4,4]]"), -1);
  for (const char* shapes : {"[[-4,4],[4,4]]", "[[4.5,4],[4,4]]", "[[1e16,4],[4,4]]", "[[4,4],[5,4]]",
                             "[[2,4,4],[2,4,4]]", "[[4,null,4],[4,4]]", R"([["x",4,4],[4,4]])", "[[4,NaN],[4,4]]"}) {
    EXPECT_EQ(alone("aten::mm", shapes), -1) << shapes;
  }
  EXPECT_EQ(alone("aten::bmm", "[[5,6,7],[4,7,3]]"), -1);
  EXPECT_EQ(flops_of(operation("aten::mm", "[[4,4],[4,4]]", "[]", "c10::complex<float>")), -1);
  EXPECT_EQ(alone("aten::_scaled_dot_product_flash_attention", "[[2,4,16,8],[2,3,20,8],[2,3,20,8]]"), -1);
  EXPECT_EQ(alone("aten::_scaled_dot_product_flash_attention", "[[2,4,16,8],[2,4,20,8],[2,4,21,8]]"), -1);
  EXPECT_EQ(alone("aten::mkldnn_rnn_layer", "[[10,4,32],[64,31],[64,16],[64],[64],[4,16],[4,16],[]]"), -1);
}

TEST(Flops, NoneForASumWithoutEnd) {
  std::string sizes = "40000";
  std::string ones = "1";
  for (int i = 0; i < 18; ++i) {
    sizes += ",9e15";
    ones += ",1";
  }
  const auto large = [&](double begin) {
    return operation("aten::convolution", fmt::format("[[9e15,1,{}],[1,1,{}],[]]", sizes, ones),
                     R"(["","","","[1]","[0]","[1]","False","[0]","1"])", "float", begin);
  };
  EXPECT_GT(flops_of(large(1010)), 1e307);
  EXPECT_EQ(flops_of(large(1010) + "," + large(1020)), -1);
}

TEST(Flops, NoneForConvolutionsThatCannotBe) {
  const auto with = [](std::string_view shapes, std::string_view values) {
    return flops_of(operation("aten::convolution", shapes, values));
  };
  const auto plain = [](std::string_view stride, std::string_view transposed, std::string_view groups) {
    return fmt::format(R"(["","","","{}","[0, 0]","[1, 1]","{}","[0, 0]","{}"])", stride, transposed, groups);
  };
  const std::string good = "[[1,4,8,8],[6,4,3,3],[]]";
  EXPECT_EQ(with(good, plain("[1, 1]", "False", "1")), 2.0 * 6 * 6 * 6 * 4 * 9);
  EXPECT_EQ(with(good, "[]"), -1);
  EXPECT_EQ(with(good, plain("[1, 1]", "0", "1")), -1);
  EXPECT_EQ(with(good, plain("[1, 1]", "", "1")), -1);
  EXPECT_EQ(with(good, plain("[0, 1]", "False", "1")), -1);
  EXPECT_EQ(with(good, plain("[1, x]", "False", "1")), -1);
  EXPECT_EQ(with(good, plain("[1, 1, 1]", "False", "1")), -1);
  EXPECT_EQ(with(good, plain("[1, 1]", "False", "2")), -1);
  EXPECT_EQ(with("[[1,4,2,8],[6,4,3,3],[]]", plain("[1, 1]", "False", "1")), -1) << "smaller than its kernel";
  const auto backward = [](std::string_view shapes, std::string_view transposed, std::string_view wanted) {
    return flops_of(operation(
        "aten::convolution_backward", shapes,
        fmt::format(R"(["","","","[8]","[1, 1]","[0, 0]","[1, 1]","{}","[0, 0]","1","{}"])", transposed, wanted)));
  };
  const std::string shapes = "[[1,6,6,6],[1,4,8,8],[6,4,3,3]]";
  EXPECT_EQ(backward(shapes, "False", "[True, True, False]"), 2 * 2.0 * 6 * 6 * 6 * 4 * 9);
  EXPECT_EQ(backward(shapes, "maybe", "[True, True, False]"), -1);
  for (const char* wanted : {"[True, True]", "[1, 1, 0]", "True, True, False", "[True, True, False", "[]"}) {
    EXPECT_EQ(backward(shapes, "False", wanted), -1) << wanted;
  }
  EXPECT_EQ(backward("[[1,6,7,6],[1,4,8,8],[6,4,3,3]]", "False", "[True, True, False]"), -1);
}

constexpr const char* kProduct = "[[500,1000],[1000,1000]]";

TEST(Flops, UtilisationNeedsTheDevicesPeak) {
  const auto ran = [](std::string_view type, double begin = 1010, std::string_view name = "ampere_sgemm") {
    return operation("aten::mm", kProduct, "[]", type, begin) + "," + kernel(name, begin + 1);
  };
  const auto peak = [](const std::string& events, std::string_view device = "NVIDIA A100-SXM4-80GB") {
    return traced(events, device).seconds_at_peak().value_or(-1);
  };
  EXPECT_DOUBLE_EQ(peak(ran("c10::BFloat16")), 1e9 / 312e12);
  EXPECT_DOUBLE_EQ(peak(ran("float")), 1e9 / 19.5e12);
  EXPECT_DOUBLE_EQ(peak(ran("float", 1010, "ampere_sgemm_tf32_16816gemm")), 1e9 / 156e12);
  // Beside other types, products of fp32 numbers may have run as TF32.
  EXPECT_DOUBLE_EQ(peak(ran("c10::BFloat16") + "," + ran("float", 1030)), 1e9 / 312e12 + 1e9 / 156e12);
  EXPECT_EQ(peak(ran("float"), "a GPU of tomorrow"), -1);
  EXPECT_EQ(peak(ran("double")), -1);
  EXPECT_EQ(peak(ran("")), -1);
  EXPECT_DOUBLE_EQ(peak(ran("c10::Half"), "Tesla T4"), 1e9 / 65e12);
  EXPECT_EQ(peak(ran("c10::BFloat16"), "Tesla T4"), -1) << "has no units for it";
  EXPECT_EQ(peak(ran("float"), "Tesla T4"), -1) << "123 us in a window of 100 us";
  EXPECT_EQ(peak(operation("aten::mm", kProduct)), -1) << "on the host";
}

TEST(Flops, ThePeakIsThatOfTheOneDeviceThatWorked) {
  const auto on = [](int device, double begin) {
    return operation("aten::mm", kProduct, "[]", "c10::Half", begin) + "," +
           kernel("ampere_h16816gemm", begin + 1, "cudaLaunchKernel", device);
  };
  const auto peak = [](const std::string& events) {
    const std::string step =
        R"({"ph":"X","cat":"user_annotation","name":"ProfilerStep#5","pid":7,"tid":1,"ts":1000,"dur":100,"args":{}},)";
    logs::Source source("trace.json", R"({"deviceProperties":[{"id":0,"name":"NVIDIA H100 80GB HBM3"},)"
                                      R"({"id":1,"name":"NVIDIA A100-SXM4-80GB"}],"traceEvents":[)" +
                                          step + events + "]}");
    return read_trace(source).seconds_at_peak().value_or(-1);
  };
  EXPECT_DOUBLE_EQ(peak(on(0, 1010)), 1e9 / 989.4e12);
  EXPECT_DOUBLE_EQ(peak(on(1, 1010)), 1e9 / 312e12);
  EXPECT_EQ(peak(on(2, 1010)), -1);
  EXPECT_EQ(peak(on(0, 1010) + "," + on(1, 1030)), -1);
}

TEST(Flops, NoneBesideWorkThatIsNotCounted) {
  const std::string half = operation("aten::mm", kProduct, "[]", "c10::Half") + "," + kernel("ampere_h16816gemm");
  EXPECT_EQ(flops_of(half + "," + kernel("vectorized_elementwise_kernel", 1030)), 1e9);
  for (const char* name : {"void flash_fwd_kernel<Flash_fwd_kernel_traits>", "triton_tem_fused_mm_0", "sgemm_128"}) {
    EXPECT_EQ(flops_of(half + "," + kernel(name, 1030)), -1) << name;
    EXPECT_EQ(flops_of(half + "," + kernel(name, 1130)), 1e9) << "after the steps";
  }
  EXPECT_EQ(flops_of(half + "," + kernel("vectorized_elementwise_kernel", 1030, "cudaGraphLaunch")), -1);
  EXPECT_EQ(flops_of(half + "," + kernel("vectorized_elementwise_kernel", 1030, "hipGraphLaunch")), -1);
  EXPECT_EQ(flops_of(half + "," + operation("aten::_sparse_mm", "[[9,9],[9,2]]", "[]", "float", 1030)), -1);
  // Generated code may compute anything, except in torch's own operators.
  EXPECT_EQ(flops_of(half + "," + kernel("my_kernel", 1030, "cuLaunchKernel")), -1);
  EXPECT_EQ(flops_of(half + "," + kernel("triton_poi_fused_add_0", 1030, "cuLaunchKernel")), 1e9);
  EXPECT_EQ(flops_of(half + "," + operation("aten::lgamma", "[[4]]", "[]", "float", 1029) + "," +
                     kernel("lgamma_kernel", 1030, "cuLaunchKernel")),
            1e9);
  // Beside a device: what launches nothing ran on the host, or not at all.
  EXPECT_EQ(flops_of(half + "," + operation("aten::mm", kProduct, "[]", "float", 1030)), -1);
  EXPECT_EQ(flops_of(half + "," + operation("aten::mm", "[[4,4],[4,4]]", "[]", "float", 1030)), 1e9 + 128);
}

TEST(Flops, TheTextNamesTheTypeOfMost) {
  const auto text = [](const std::string& events) { return to_text(traced(events), 200); };
  const std::string half = operation("aten::mm", "[[40,100],[100,100]]", "[]", "c10::Half");
  const auto other = [](std::string_view type, int rows) {
    return "," + operation("aten::mm", fmt::format("[[{},100],[100,100]]", rows), "[]", type, 1020);
  };
  EXPECT_NE(text(half).find("/s in fp16"), std::string::npos);
  EXPECT_NE(text(half + other("float", 2)).find("/s in fp16"), std::string::npos);
  EXPECT_NE(text(half + other("float", 20)).find("/s, mostly in fp16"), std::string::npos);
  EXPECT_EQ(text(half + other("float", 40)).find(" in fp"), std::string::npos);
  EXPECT_NE(text(operation("aten::mm", "[[40,100],[100,100]]", "[]", "")).find("FLOP/s\n"), std::string::npos);
}

// The host runs ahead of the device.
TEST(Flops, AStepLastsUntilItsWorkIsDone) {
  const std::string late =
      R"(,{"ph":"X","cat":"kernel","name":"add","pid":0,"tid":7,"ts":1200,"dur":200,"args":{"device":0,"correlation":1013}})";
  const TraceSummary trace = traced(operation("aten::mm", kProduct, "[]", "c10::Half") + "," +
                                    kernel("ampere_h16816gemm", 1012) + "," + kernel("add", 1013) + late);
  EXPECT_DOUBLE_EQ(*trace.seconds_per_step(), 400e-6);
  EXPECT_NE(to_text(trace, 200).find("2.5 TFLOP/s"), std::string::npos) << to_text(trace, 200);
}

TEST(Flops, StayInTheDocument) {
  const TraceSummary trace = traced(operation("aten::mm", "[[4,4],[4,4]]", "[]", "c10::Half"));
  const TraceSummary again = summary_from_json(to_json(trace), "a test");
  ASSERT_EQ(again.flops.size(), 1U);
  EXPECT_EQ(again.flops.front().type, "fp16");
  EXPECT_EQ(again.flops_per_step(), trace.flops_per_step());
  nlohmann::json older = to_json(trace);
  older.erase("flops");
  EXPECT_FALSE(summary_from_json(older, "a test").flops_per_step());
}

}  // namespace
}  // namespace unidle::trace
