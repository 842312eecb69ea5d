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

double flops_of(const std::string& events) { return traced(events).flops_per_step().value_or(-1); }

constexpr const char* kForward = R"(["","","","[2, 2]","[1, 1]","[1, 1]","False","[0, 0]","1"])";

TEST(Flops, Products) {
  EXPECT_EQ(flops_of(operation("aten::mm", "[[40,32],[32,96]]")), 2.0 * 40 * 32 * 96);
  EXPECT_EQ(flops_of(operation("aten::addmm", "[[64],[40,32],[32,64],[],[]]")), 2.0 * 40 * 32 * 64);
  EXPECT_EQ(flops_of(operation("aten::bmm", "[[5,6,7],[5,7,3]]")), 2.0 * 5 * 6 * 7 * 3);
  EXPECT_EQ(flops_of(operation("aten::mm", "[[0,32],[32,96]]")), 0);
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
}

TEST(Flops, NoneWhereACallCannotBeCounted) {
  EXPECT_EQ(flops_of(operation("aten::mm", "[[4,4],[4,4]]") + "," + operation("aten::mm", "[[4],[4,4]]")), -1);
  EXPECT_EQ(flops_of(operation("aten::convolution", "[[4,3,32,32],[8,3,3,3],[8]]", "[]")), -1);
  EXPECT_EQ(flops_of(operation("aten::relu", "[[4,4]]")), -1);
}

TEST(Flops, UtilisationNeedsTheDevicesPeak) {
  const std::string half = operation("aten::mm", "[[1000,1000],[1000,1000]]", "[]", "c10::BFloat16");
  const std::string single = operation("aten::mm", "[[1000,1000],[1000,1000]]");
  EXPECT_DOUBLE_EQ(*traced(half).seconds_at_peak(), 2e9 / 312e12);
  EXPECT_DOUBLE_EQ(*traced(single).seconds_at_peak(), 2e9 / 19.5e12);
  EXPECT_DOUBLE_EQ(*traced(half + "," + single).seconds_at_peak(), 2e9 / 312e12 + 2e9 / 19.5e12);
  EXPECT_FALSE(traced(half, "a GPU of tomorrow").seconds_at_peak());
  EXPECT_FALSE(traced(operation("aten::mm", "[[10,10],[10,10]]", "[]", "double")).seconds_at_peak());
  const std::string kernel =
      R"(,{"ph":"X","cat":"kernel","name":"ampere_sgemm_tf32_16816gemm","pid":0,"tid":7,"ts":1020,"dur":5,"args":{"device":0}})";
  EXPECT_DOUBLE_EQ(*traced(single + kernel).seconds_at_peak(), 2e9 / 156e12);
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
