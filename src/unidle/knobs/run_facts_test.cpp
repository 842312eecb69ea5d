#include "unidle/knobs/run_facts.h"

#include <gtest/gtest.h>

namespace unidle::knobs {
namespace {

std::string device(const std::string& text, const std::string& name = "c.yaml") {
  const auto fact = device_other_than_gpu(ConfigFile::from_text(text, name));
  return fact ? fact->device : "";
}

TEST(RunFacts, WhatRunsOnNoGpu) {
  for (const char* text : {"device: cpu\n", "use_cpu: true\n", "no_cuda: True\n", "trainer:\n  accelerator: cpu\n",
                           "distributed_type: MULTI_CPU\n", "MODEL:\n  DEVICE: cpu\n", "use_cuda: false\n",
                           "device: \"cpu:0\"\n", "where: cpu\ndevice: ${where}\n"}) {
    EXPECT_EQ(device(text), "cpu") << text;
  }
  EXPECT_EQ(device("accelerator: mps\n"), "mps");
  EXPECT_EQ(device("distributed_type: TPU\n"), "tpu");
  for (const char* text :
       {"device: cuda\n", "use_cpu: false\n", "distributed_type: MULTI_GPU\n", "device: auto\n", "no_cuda: false\n",
        "zero_optimization: {offload_optimizer: {device: cpu}}\n", "teacher: {device: cpu}\n", "map_location: cpu\n",
        "use_cpu_initialization: true\n", "device: 0\n"}) {
    EXPECT_EQ(device(text), "") << text;
  }
}

TEST(RunFacts, HowManyStepsThereAre) {
  const auto steps = [](const char* text) { return most_steps(ConfigFile::from_text(text, "c.yaml")).value_or(0); };
  EXPECT_EQ(steps("max_steps: 10\n"), 10);
  EXPECT_EQ(steps("trainer: {max_steps: -1, limit_train_batches: 8}\n"), 8);
  EXPECT_EQ(steps("trainer: {limit_train_batches: 0.5}\n"), 0) << "a share";
  EXPECT_EQ(steps("max_duration: 100ba\n"), 100);
  EXPECT_EQ(steps("max_duration: 1ep\n"), 0);
  EXPECT_EQ(steps("train_iters: 320000\nmax_steps: 1_000\n"), 1000);
  EXPECT_EQ(steps("warmup_steps: 10\nsave_steps: 5\n"), 0);
}

TEST(RunFacts, DevicesThatShareABatch) {
  const auto devices = [](const char* text) { return devices_of_a_batch(ConfigFile::from_text(text, "c.yaml")); };
  EXPECT_EQ(devices("pipe_parallel_size: 4\n"), 4);
  EXPECT_EQ(devices("pipeline_model_parallel_size: 2\nmodel_parallel_size: 8\n"), 2);
  EXPECT_EQ(devices("context_parallel_size: 2\n"), 2);
  EXPECT_EQ(devices("sequence_parallel_degree: 4\n"), 4);
  EXPECT_EQ(devices("cp_size: 2\n"), 2);
  EXPECT_EQ(devices("pipe-parallel-size: 1\n"), 1);
  EXPECT_EQ(devices("sequence_parallel: true\nsequence_len: 512\nsequence_size: 1\n"), 1);
  EXPECT_EQ(devices("a: 1\n"), 1);
}

TEST(RunFacts, HowManyGpusAMachineGives) {
  const auto gpus = [](const char* text) { return gpus_of_a_machine(ConfigFile::from_text(text, "c.yaml")); };
  EXPECT_EQ(gpus("trainer:\n  devices: 8\n  num_nodes: 4\n"), 8);
  EXPECT_EQ(gpus("devices: [0, 2, 3]\n"), 3);
  EXPECT_EQ(gpus("train:\n  gpus: \"0,1\"\n"), 2);
  EXPECT_EQ(gpus("nproc_per_node: 4\n"), 4);
  EXPECT_EQ(gpus("n: 2\ntrainer: {devices: '${n}'}\n"), 2);
  for (const char* text : {"device: 3\n", "gpu: 2\n", "devices: auto\n", "devices: -1\n", "gpus: 0\n", "gpus: \"\"\n",
                           "teacher: {devices: 8}\n", "batch_size: 8\n"}) {
    EXPECT_EQ(gpus(text), 1) << text;
  }
}

TEST(RunFacts, WhatGeneratesItsSamples) {
  const auto generates = [](const char* text) { return generates_samples(ConfigFile::from_text(text, "c.yaml")); };
  EXPECT_TRUE(generates("trainer: {ppo: {max_epochs: 1}}\n"));
  EXPECT_TRUE(generates("num_generations: 16\n"));
  EXPECT_TRUE(generates("actor_rollout_ref: {actor: {strategy: fsdp}}\n"));
  EXPECT_FALSE(generates("training: {rollout_every: 50}\nnum_generation_steps: 4\nsupport: 1\n"));
}

}  // namespace
}  // namespace unidle::knobs
