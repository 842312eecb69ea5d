#include "unidle/diagnose/detail/notes.h"

#include <gmock/gmock.h>

namespace unidle::diagnose::detail {
namespace {

using nlohmann::json;

constexpr std::int64_t kTraining = 42;

record::Note note(std::int64_t t_ns, std::int64_t process, const json& body) { return {t_ns, process, body}; }

Signals read(std::vector<record::Note> notes) {
  Signals signals;
  read_notes(Notes(std::move(notes), kTraining), signals);
  return signals;
}

TEST(Notes, TheNewestOfAKindCounts) {
  const json old = {{"type", "logging"}, {"calls", 10}, {"seconds", 1.0}, {"where", "a.py:1"}};
  const json later = {{"type", "logging"}, {"calls", 30}, {"seconds", 3.0}, {"where", "a.py:1"}};
  for (const auto& notes : {std::vector{note(1, kTraining, old), note(2, kTraining, later)},
                            std::vector{note(2, kTraining, later), note(1, kTraining, old)}}) {
    const Signals signals = read(notes);
    ASSERT_TRUE(signals.logging.has_value());
    EXPECT_EQ(signals.logging->calls, 30);
    EXPECT_EQ(signals.logging->seconds, 3);
  }
}

TEST(Notes, OfRanksThatLogAtTheSameTimeTheLongestCounts) {
  const Signals signals =
      read({note(1, kTraining, {{"type", "logging"}, {"calls", 1}, {"seconds", 1.0}, {"where", "a.py:1"}}),
            note(2, kTraining, {{"type", "logging"}, {"calls", 2}, {"seconds", 5.0}, {"where", "a.py:2"}}),
            note(1, 100, {{"type", "logging"}, {"calls", 1}, {"seconds", 2.0}, {"where", "b.py:1"}})});
  EXPECT_EQ(signals.logging->seconds, 5);  // the second note of a process includes the first one's values
  EXPECT_EQ(signals.logging->calls, 2);
  EXPECT_EQ(signals.logging->where, "a.py:2");
}

TEST(Notes, FunctionsOfOneLineAreAllCounted) {
  const auto hot = [](const char* function, int hits) {
    return json{{"type", "hot"}, {"role", "train"},      {"phase", "train"}, {"where", "a.py:7"},
                {"hits", hits},  {"function", function}, {"total", 100}};
  };
  const Signals signals =
      read({note(1, kTraining, hot("build.<locals>.<genexpr>", 90)), note(2, kTraining, hot("build", 8))});
  ASSERT_EQ(signals.hot.size(), 2);
  EXPECT_EQ(signals.hot[0].hits + signals.hot[1].hits, 98);
  EXPECT_EQ(signals.hot[0].function, "build");
  EXPECT_EQ(signals.hot[1].function, "build");
}

json loader(int id, const char* use, int workers) {
  return {{"type", "loader"},   {"id", id},           {"use", use},
          {"workers", workers}, {"dataset_len", 100}, {"map_style", true}};
}
json samples(int id, int count, double seconds) {
  return {{"type", "samples"},
          {"id", id},
          {"count", count},
          {"seconds_total", seconds},
          {"p50", seconds / count},
          {"cpu_seconds", seconds / 2},
          {"wait_seconds", seconds / 2}};
}

TEST(Notes, SamplesOfAllWorkersButOnlyForTraining) {
  const Signals signals = read({note(1, kTraining, loader(1, "train", 2)), note(1, kTraining, loader(2, "validate", 0)),
                                note(2, 100, samples(1, 30, 3)), note(2, 101, samples(1, 10, 1)),
                                note(2, kTraining, samples(2, 1000, 1000))});
  ASSERT_TRUE(signals.samples.has_value());
  EXPECT_EQ(signals.samples->count, 40);
  EXPECT_NEAR(signals.samples->total_s, 4, 1e-9);
  EXPECT_NEAR(*signals.samples->p50_s, 0.1, 1e-9);
  EXPECT_NEAR(*signals.samples->wait_s, 2, 1e-9);
  EXPECT_EQ(signals.loader->workers, 2);
}

// Workers that live for one epoch make each sample once; the next epoch's workers are compared with them.
TEST(Notes, SamplesThatWereMadeAgain) {
  const auto with = [](int id, const json& again) {
    json body = samples(id, 10, 1);
    body["again"] = again;
    return body;
  };
  const Signals signals = read({note(1, kTraining, loader(1, "train", 2)), note(1, kTraining, loader(2, "validate", 0)),
                                note(2, 100, with(1, {{"7", {"aa", 0, 0}}, {"9", {"bb", 2, 1}}})),
                                note(3, 101, with(1, {{"7", {"aa", 0, 0}}, {"9", {"cc", 0, 0}}, {"11", {1, 2}}})),
                                note(3, kTraining, with(2, {{"7", {"dd", 5, 5}}}))});
  EXPECT_EQ(signals.samples->compared_samples, 5);
  EXPECT_EQ(signals.samples->identical_samples, 3);
  EXPECT_TRUE(signals.samples->differ());
}

TEST(Notes, CpusOfTheWorkers) {
  const auto affinity = [](const char* role, const char* cpus) {
    return json{{"type", "affinity"}, {"role", role}, {"cpus", cpus}};
  };
  const Signals signals = read({note(1, kTraining, affinity("train", "0-3")), note(2, 100, affinity("worker", "0,1")),
                                note(2, 101, affinity("worker", "1-2")), note(2, 102, affinity("worker", "x"))});
  EXPECT_EQ(signals.cpus_of_workers, 3);
}

TEST(Notes, TheNewestTrainingLoaderAndTheStartsOfAll) {
  const auto start = [](int id, int count, double seconds) {
    return json{{"type", "loader_start"}, {"id", id}, {"count", count}, {"in_training", seconds}};
  };
  const Signals signals = read({note(1, kTraining, loader(1, "train", 4)), note(5, kTraining, loader(2, "train", 8)),
                                note(5, kTraining, loader(3, "validate", 1)), note(6, kTraining, start(1, 8, 2.0)),
                                note(6, kTraining, start(2, 8, 3.0)), note(6, kTraining, start(3, 8, 100.0)),
                                note(7, 77, loader(1, "train", 99))});
  EXPECT_EQ(signals.loader->workers, 8);
  EXPECT_EQ(signals.loader->starts, 16);
  EXPECT_NEAR(*signals.loader->start_wait_s, 5, 1e-9);
}

TEST(Notes, TheSourceOfTheTrainingLoaderAlone) {
  const auto source = [](int id, const char* name) {
    return json{{"type", "source"}, {"id", id}, {"name", name}, {"left", {"a", 3}}, {"patch", nullptr}};
  };
  const Signals signals = read({note(1, kTraining, loader(1, "train", 4)), note(1, kTraining, source(1, "images")),
                                note(1, kTraining, source(2, "table")), note(1, 77, source(1, "npy"))});
  ASSERT_TRUE(signals.loader->source.has_value());
  EXPECT_EQ(signals.loader->source->name, "images");
  EXPECT_EQ(signals.loader->source->left, (std::vector<std::string>{"a", ""}));
  EXPECT_EQ(signals.loader->source->patch, "");
}

TEST(Notes, WhatIsMissingStaysMissing) {
  const Signals signals = read({note(1, kTraining, {{"type", "loader"}, {"use", "train"}, {"workers", nullptr}}),
                                note(1, kTraining, {{"type", "optimizer"}, {"class", "SGD"}, {"fused", nullptr}}),
                                note(1, kTraining, {{"type", "model"}, {"convolutions", false}}),
                                note(1, kTraining, {{"type", 3}}), note(1, kTraining, json::array({1})),
                                note(1, kTraining, {{"type", "samples"}, {"count", "many"}, {"seconds_total", 1}}),
                                note(1, kTraining, {{"type", "rank"}, {"rank", 1}})});
  EXPECT_FALSE(signals.loader->workers.has_value());
  EXPECT_FALSE(signals.loader->starts.has_value());
  EXPECT_FALSE(signals.optimizer->fused.has_value());
  EXPECT_EQ(signals.model_has_convolutions, false);
  EXPECT_FALSE(signals.samples.has_value());
  EXPECT_TRUE(signals.ranks.empty());
  EXPECT_FALSE(signals.syncs.has_value());
}

TEST(Notes, TheDeviceByWordOfTheProgram) {
  const Signals signals =
      read({note(1, kTraining,
                 {{"type", "device"},
                  {"kind", "cuda"},
                  {"index", 0},
                  {"memory_bytes", 1000},
                  {"reserved_peak_bytes", 250},
                  {"capability", "9.0"},
                  {"alloc_retries", 3},
                  {"ooms", 0}}),
            note(1, kTraining, {{"type", "memory"}, {"oom", 2}, {"samples", 64}, {"steps_before", 7}}),
            note(2, 5, {{"type", "memory"}, {"oom", 1}, {"samples", 9}})});
  EXPECT_EQ(signals.effective("device"), "cuda");
  EXPECT_EQ(signals.gpu_capability, "9.0");
  EXPECT_NEAR(*signals.gpu_memory_used, 0.25, 1e-9);
  EXPECT_EQ(signals.gpu.alloc_retries, 3);
  EXPECT_EQ(signals.gpu.ooms, 2);
  EXPECT_EQ(signals.gpu.oom_samples, 64);
  EXPECT_EQ(signals.gpu.oom_steps_before, 7);
}

}  // namespace
}  // namespace unidle::diagnose::detail
