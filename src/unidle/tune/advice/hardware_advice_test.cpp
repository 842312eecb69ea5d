#include "unidle/tune/advice/hardware_advice.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "unidle/knobs/knob.h"
#include "unidle/tune/advice/foreign_advice.h"
#include "unidle/tune/advice/gpu_table.h"
#include "unidle/tune/advice/proposals.h"

namespace unidle::tune {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Hardware with_gpus(const char* device, double cpus, int gpus = 1) {
  Hardware host;
  host.cpus = cpus;
  Hardware hardware = with_device(host, device);
  hardware.gpus = std::min(hardware.gpus, 1) * gpus;
  return hardware;
}

std::string value_for(const Hardware& hardware, const char* knob, const char* present) {
  const auto advised = advised_for(hardware, knob, *knobs::parse_value(*knobs::find_knob(knob), present));
  return advised ? advised->value.to_text() : "";
}

TEST(HardwareAdvice, WorkersOfOneProcessShareTheCpusWithItsGpu) {
  EXPECT_EQ(best_workers(with_gpus("H100", 8)), 7);
  EXPECT_EQ(best_workers(with_gpus("H100", 32, 4)), 7);
  EXPECT_EQ(best_workers(with_gpus("H100", 256)), 16);
  EXPECT_EQ(best_workers(with_gpus("cpu", 8)), 4);
  EXPECT_EQ(best_workers(with_gpus("cpu", 0.5)), 1);
  EXPECT_EQ(value_for(with_gpus("H100", 8), "loader.workers", "64"), "7");
  EXPECT_EQ(value_for(with_gpus("H100", 8), "loader.workers", "3"), "");
  EXPECT_THAT(advised_for(with_gpus("H100", 32, 4), "loader.workers", 0)->reason, HasSubstr("32 CPUs for 4 GPUs"));
}

TEST(HardwareAdvice, TheFormatIsTheOneThatTheDeviceHasUnitsFor) {
  EXPECT_EQ(value_for(with_gpus("H100", 8), "precision.amp", "off"), "bf16");
  EXPECT_EQ(value_for(with_gpus("H100", 8), "precision.amp", "fp16"), "") << "has units for it as well";
  EXPECT_EQ(value_for(with_gpus("T4", 8), "precision.amp", "off"), "fp16");
  EXPECT_EQ(value_for(with_gpus("T4", 8), "precision.amp", "bf16"), "fp16");
  EXPECT_EQ(value_for(with_gpus("GTX 1080 Ti", 8), "precision.amp", "off"), "");
  EXPECT_EQ(value_for(with_gpus("cpu", 8), "precision.amp", "off"), "");
  EXPECT_EQ(value_for(with_gpus("T4", 8), "precision.tf32", "false"), "");
}

TEST(HardwareAdvice, ThreadsAreAsManyAsCpus) {
  EXPECT_EQ(value_for(with_gpus("cpu", 4), "cpu.threads", "8"), "4");
  EXPECT_EQ(value_for(with_gpus("cpu", 4), "cpu.threads", "2"), "4");
  EXPECT_EQ(value_for(with_gpus("cpu", 4), "cpu.threads", "0"), "") << "the program's own choice";
  EXPECT_EQ(value_for(with_gpus("cpu", 4), "cpu.threads", "4"), "");
  EXPECT_EQ(value_for(with_gpus("H100", 4), "cpu.threads", "8"), "4");
  EXPECT_EQ(value_for(with_gpus("H100", 4), "cpu.threads", "2"), "") << "the arithmetic is elsewhere";
}

TEST(HardwareAdvice, KnowsNothingOfOtherKnobs) {
  EXPECT_FALSE(advised_for(with_gpus("H100", 8), "optimizer.lr", 0.1));
  EXPECT_FALSE(advised_for(with_gpus("H100", 8), "no.such.knob", ""));
  EXPECT_FALSE(has_room_for_larger_batches(with_gpus("T4", 8)));
  EXPECT_TRUE(has_room_for_larger_batches(with_gpus("A100", 8)));
  EXPECT_FALSE(has_room_for_larger_batches(with_gpus("cpu", 8)));
}

/// The safe proposal for a workload whose knob has the value `present`; empty without one.
std::string proposed(const Hardware& hardware, std::string_view knob, const std::string& present) {
  const std::string name(knob);
  for (const Proposal& proposal :
       propose({{name, *knobs::parse_value(*knobs::find_knob(knob), present)}}, nullptr, hardware, {})) {
    if (proposal.safe && proposal.changes.contains(name)) {
      return proposal.changes.at(name).to_text();
    }
  }
  return "";
}

/// The advice for another program's configuration.
std::string told(const Hardware& hardware, std::string_view knob, const std::string& present) {
  const std::string name(knob);
  const std::string group = name.substr(0, name.find('.'));
  const std::string key = name.substr(name.find('.') + 1);
  knobs::ConfigFile config = knobs::ConfigFile::from_text(group + ":\n  " + key + ": " + present + "\n", "c.yaml");
  for (const knobs::Change& change : advise_foreign(config, hardware, Profile::kBalanced).changes) {
    if (change.knob == knob) {
      return change.to->to_text();
    }
  }
  return "";
}

TEST(HardwareAdvice, AWorkloadAndAnotherProgramAreToldTheSame) {
  int advised = 0;
  for (const char* device : {"cpu", "GTX 1080 Ti", "T4", "A100 80GB", "H100"}) {
    for (const double cpus : {1.0, 2.5, 8.0, 48.0}) {
      for (const int gpus : {1, 4}) {
        const Hardware hardware = with_gpus(device, cpus, gpus);
        for (const std::string_view knob : knobs_of_hardware()) {
          for (const char* present : {"0", "2", "64", "off", "bf16", "fp16", "false", "true"}) {
            const knobs::Knob* known = knobs::find_knob(knob);
            const auto value = knobs::parse_value(*known, present);
            if (!value || value->to_text() != present) {
              continue;
            }
            const std::string wanted = value_for(hardware, known->name.c_str(), present);
            EXPECT_EQ(proposed(hardware, knob, present), wanted)
                << knob << "=" << present << " on " << device << ", " << cpus << " CPUs, " << gpus << " GPUs";
            EXPECT_EQ(told(hardware, knob, present), wanted)
                << knob << "=" << present << " on " << device << ", " << cpus << " CPUs, " << gpus << " GPUs";
            advised += wanted.empty() ? 0 : 1;
          }
        }
      }
    }
  }
  EXPECT_GT(advised, 100);
}

}  // namespace
}  // namespace unidle::tune
