// Tests with several processes: this test starts itself again, once per rank.
#include "unidle/train/ranks/ranks.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <random>

#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/train/device.h"
#include "unidle/train/testing/line_workload.h"
#include "unidle/train/trainer.h"

extern char** environ;

namespace unidle::train {
namespace {

using ::testing::HasSubstr;

TEST(RankPlace, FirstHostOfASlurmList) {
  EXPECT_EQ(first_host("n[03-05,9],m1"), "n03");
  EXPECT_EQ(first_host("n[7]"), "n7");
  EXPECT_EQ(first_host("a,b"), "a");
  EXPECT_EQ(first_host("node1"), "node1");
}

/// The order of one rank; orders and answers are files in a folder.
nlohmann::json told() { return nlohmann::json::parse(read_file(std::getenv("RANK_TEST_ORDER"))); }

/// One whole rank; the tests below run it in a process of its own.
TEST(RankProcess, DISABLED_Trains) {
  const nlohmann::json order = told();
  const RankPlace place = *RankPlace::from_environment();
  const std::string answer = fmt::format("{}.{}", std::getenv("RANK_TEST_ORDER"), place.rank);
  std::vector<std::string> overrides = order["overrides"];
  if (place.rank > 0 && order.contains("others")) {
    overrides.push_back(order["others"].get<std::string>());
  }
  overrides.insert(overrides.begin(), {"cpu.threads=1", "train.warmup_samples=4", "optimizer.lr=0.01", "device=cpu"});
  const Config config = Config::from_text("workload: line\n", "line.yaml", overrides);
  nlohmann::json told_back;
  try {
    Ranks ranks(place, std::chrono::seconds(order["timeout_s"].get<int>()));
    try {
      configure_torch(config);
      testing::LineWorkload workload(order["one_by_one"] == 0);
      workload.most_validated = order["one_by_one"];
      workload.noise = 0;
      if (place.rank == order["fails"]) {
        workload.points().not_finite = 7;
      }
      if (place.rank == order["short_of_memory"]) {
        workload.most_samples = 1;
      }
      if (order.contains("unused")) {
        workload.model().register_parameter("idle", at::zeros({2}));
      }
      if (place.rank == order["cannot_open"]) {
        throw Error(ErrorCode::kMissing, "train.csv", "there is no data");
      }
      Events events;
      TrainOptions options;
      options.ranks = &ranks;
      if (order.contains("resume")) {
        options.resume = order["resume"].get<std::string>();
      }
      options.on_progress = [&](const Progressed& now) {
        if (place.rank == order["dies"] && now.samples == order["dies_at"]) {
          raise(SIGKILL);
        }
      };
      Trainer trainer(workload, config, at::kCPU, events, options);
      const Summary summary = trainer.run();
      const at::Tensor weights = at::cat({workload.model().parameters()[0].detach().flatten()}).to(at::kDouble);
      told_back = {{"loss_first", summary.loss_first.value()},
                   {"loss_last", summary.loss_last.value()},
                   {"metric", summary.metric},
                   {"validated", workload.validated},
                   {"weights", std::vector<double>(weights.const_data_ptr<double>(),
                                                   weights.const_data_ptr<double>() + weights.numel())}};
    } catch (const std::exception&) {
      ranks.end_all();
    }
  } catch (const Error& error) {
    told_back = {{"error", error.what()}};
  }
  write_file_atomic(answer, told_back.dump());
}

class RanksTest : public ::testing::Test {
 protected:
  /// The answers of all ranks; null for a rank without one. `absent`: a rank that is never started.
  std::vector<nlohmann::json> train(int world, nlohmann::json order, int absent = -1) {
    order.emplace("timeout_s", 60);
    order.emplace("fails", -1);
    order.emplace("cannot_open", -1);
    order.emplace("short_of_memory", -1);
    order.emplace("dies", -1);
    order.emplace("dies_at", -1);
    order.emplace("one_by_one", 0);
    const std::filesystem::path file = folder_.path() / "order";
    write_file_atomic(file, order.dump());
    // Below the range of ephemeral ports.
    const int port = 21000 + static_cast<int>(std::random_device{}() % 11000);
    std::vector<pid_t> started;
    for (int rank = 0; rank < world; ++rank) {
      std::filesystem::remove(fmt::format("{}.{}", file.string(), rank));
      if (rank != absent) {
        started.push_back(start(rank, world, port, file.string()));
      }
    }
    for (const pid_t process : started) {
      int status = 0;
      waitpid(process, &status, 0);
    }
    std::vector<nlohmann::json> answers;
    for (int rank = 0; rank < world; ++rank) {
      const auto text = try_read_file(fmt::format("{}.{}", file.string(), rank));
      answers.push_back(text ? nlohmann::json::parse(*text) : nlohmann::json());
    }
    return answers;
  }

  TemporaryFolder folder_;

 private:
  static pid_t start(int rank, int world, int port, const std::string& order) {
    std::vector<std::string> environment = {
        fmt::format("RANK={}", rank),      fmt::format("WORLD_SIZE={}", world),
        "MASTER_ADDR=127.0.0.1",           fmt::format("MASTER_PORT={}", port),
        "RANK_TEST_ORDER=" + order,        fmt::format("LOCAL_WORLD_SIZE={}", world),
        fmt::format("LOCAL_RANK={}", rank)};
    for (char** entry = environ; *entry != nullptr; ++entry) {
      if (!std::string_view(*entry).starts_with("GTEST_")) {  // a shard of these tests has no test of its own
        environment.emplace_back(*entry);
      }
    }
    std::vector<std::string> words = {"rank", "--gtest_filter=RankProcess.*", "--gtest_also_run_disabled_tests"};
    std::vector<char*> argv;
    std::vector<char*> envp;
    for (std::string& word : words) {
      argv.push_back(word.data());
    }
    for (std::string& entry : environment) {
      envp.push_back(entry.data());
    }
    argv.push_back(nullptr);
    envp.push_back(nullptr);
    const pid_t process = vfork();
    if (process == 0) {
      execve("/proc/self/exe", argv.data(), envp.data());
      _exit(127);
    }
    return process;
  }
};

TEST_F(RanksTest, TwoTrainAsOneDoesWithTheSameGlobalBatch) {
  const std::vector<std::string> common = {"train.samples=96", "metrics.interval=6", "ema.decay=0.5"};
  auto with = [&](std::vector<std::string> more) {
    more.insert(more.end(), common.begin(), common.end());
    return nlohmann::json{{"overrides", more}};
  };
  // The same in one process.
  const Config config = Config::from_text("workload: line\n", "line.yaml",
                                          {"cpu.threads=1", "optimizer.lr=0.01", "batch.size=6", "train.samples=96",
                                           "metrics.interval=6", "ema.decay=0.5"});
  configure_torch(config);
  testing::LineWorkload workload(true);
  workload.noise = 0;
  Events events;
  Trainer alone(workload, config, at::kCPU, events, {});
  const Summary summary = alone.run();
  for (const int world : {2, 3}) {
    const auto answers = train(world, with({fmt::format("batch.size={}", 6 / world)}));
    for (const nlohmann::json& answer : answers) {
      ASSERT_TRUE(answer.contains("loss_last")) << answer;
      EXPECT_NEAR(answer["loss_first"], summary.loss_first.value(), 1e-6);
      EXPECT_NEAR(answer["loss_last"], summary.loss_last.value(), 1e-5);
      EXPECT_NEAR(answer["metric"]["mse"], summary.metric.at("mse"), 1e-5);
      EXPECT_EQ(answer["metric"]["samples"], 12);
      EXPECT_EQ(answer["weights"], answers[0]["weights"]);
    }
  }
  const auto accumulated = train(2, with({"batch.size=1", "batch.accumulation=3"}));
  ASSERT_TRUE(accumulated[1].contains("loss_last")) << accumulated[1];
  EXPECT_NEAR(accumulated[1]["loss_last"], summary.loss_last.value(), 1e-5);
}

/// Mean squared error over the first points, in a separate process without learning.
double error_alone(std::vector<std::string> overrides, std::int64_t points) {
  overrides.insert(overrides.end(), {"cpu.threads=1", "device=cpu"});
  const Config config = Config::from_text("workload: line\n", "line.yaml", overrides);
  configure_torch(config);
  testing::LineWorkload workload;
  workload.most_validated = points;
  Events events;
  const Summary summary = Trainer(workload, config, at::kCPU, events, {}).run();
  EXPECT_EQ(workload.validated.size(), static_cast<std::size_t>(points));
  return summary.metric.at("mse");
}

TEST_F(RanksTest, EachValidatesItsShareAloneAndAllHaveTheMetricOfOneProcess) {
  // Nothing is learned, so that all have the same weights whatever their batches.
  const std::vector<std::string> overrides = {"train.samples=12", "batch.size=2", "optimizer.lr=0"};
  const auto two = train(2, {{"overrides", overrides}, {"one_by_one", 12}});
  EXPECT_EQ(two[0]["validated"], nlohmann::json({0, 2, 4, 6, 8, 10}));
  EXPECT_EQ(two[1]["validated"], nlohmann::json({1, 3, 5, 7, 9, 11}));
  for (const nlohmann::json& answer : two) {
    EXPECT_NEAR(answer["metric"]["mse"], error_alone(overrides, 12), 1e-9);
    EXPECT_EQ(answer["metric"]["samples"], 12);
  }
  // The third has no items; the item that it evaluates instead does not count.
  for (const nlohmann::json& answer : train(3, {{"overrides", overrides}, {"one_by_one", 2}})) {
    ASSERT_TRUE(answer.contains("metric")) << answer;
    EXPECT_EQ(answer["validated"].size(), 1U);
    EXPECT_NEAR(answer["metric"]["mse"], error_alone(overrides, 2), 1e-9);
    EXPECT_EQ(answer["metric"]["samples"], 2);
  }
}

TEST_F(RanksTest, OneThatFailsEndsAllWithItsMessage) {
  const auto answers = train(2, {{"overrides", {"train.samples=96", "metrics.interval=1"}}, {"fails", 1}});
  // Both see that the mean is not finite; the one that reads the sample names it.
  EXPECT_THAT(answers[1]["error"].get<std::string>(), HasSubstr("item 7 of the training data"));
  EXPECT_TRUE(answers[0].contains("error"));
}

TEST_F(RanksTest, OneThatCannotOpenItsDataEndsAllWithItsMessage) {
  for (const int rank : {0, 1}) {
    for (const nlohmann::json& answer : train(2, {{"overrides", {"train.samples=96"}}, {"cannot_open", rank}})) {
      ASSERT_TRUE(answer.contains("error")) << answer;
      EXPECT_THAT(answer["error"].get<std::string>(), HasSubstr("there is no data"));
    }
  }
}

TEST_F(RanksTest, AParameterWithoutAGradientIsNamed) {
  for (const nlohmann::json& answer : train(2, {{"overrides", {"train.samples=96"}}, {"unused", true}})) {
    ASSERT_TRUE(answer.contains("error")) << answer;
    EXPECT_THAT(answer["error"].get<std::string>(), HasSubstr("parameter idle: gets no gradient"));
  }
}

TEST_F(RanksTest, OneWithAnotherSettingEndsAllWithItsName) {
  for (const char* other : {"optimizer.lr=0.5", "seed=2", "batch.size=2"}) {
    const auto answers = train(2, {{"overrides", {"train.samples=96"}}, {"others", other}});
    const std::string key(other, std::string_view(other).find('='));
    for (const nlohmann::json& answer : answers) {
      ASSERT_TRUE(answer.contains("error")) << answer;
      EXPECT_THAT(answer["error"].get<std::string>(), HasSubstr(key + ": is '"));
    }
  }
  const auto answers = train(2, {{"overrides", {"train.samples=96"}}, {"others", "loader.workers=1"}});
  EXPECT_TRUE(answers[0].contains("weights")) << answers[0];
}

TEST_F(RanksTest, OneWithoutMemoryEndsAllBecauseTheirBatchesAreOfOneSize) {
  const auto answers = train(3, {{"overrides", {"train.samples=96", "batch.size=4"}}, {"short_of_memory", 1}});
  for (const nlohmann::json& answer : answers) {
    ASSERT_TRUE(answer.contains("error")) << answer;
    EXPECT_THAT(answer["error"].get<std::string>(), HasSubstr("no memory for a batch.size of 4"));
    EXPECT_THAT(answer["error"].get<std::string>(), HasSubstr("batch.size=2 batch.accumulation=2"));
  }
  EXPECT_THAT(answers[0]["error"].get<std::string>(), HasSubstr("rank 1: "));
}

TEST_F(RanksTest, OneThatIsKilledEndsTheOthersAndTheyGoOnFromTheCheckpoint) {
  const std::string saved = (folder_.path() / "saved").string();
  const std::vector<std::string> overrides = {"train.samples=96", "batch.size=2", "checkpoint.interval=8",
                                              "checkpoint.folder=" + saved};
  const auto whole = train(2, {{"overrides", overrides}});
  remove_tree(saved);
  for (const int dies : {0, 1}) {
    const auto broken = train(2, {{"overrides", overrides}, {"dies", dies}, {"dies_at", 40}});
    EXPECT_TRUE(broken[static_cast<std::size_t>(dies)].is_null());
    EXPECT_THAT(broken[static_cast<std::size_t>(1 - dies)]["error"].get<std::string>(),
                HasSubstr("another rank: ended without a message"));
    const auto rest = train(2, {{"overrides", overrides}, {"resume", saved}});
    ASSERT_TRUE(rest[0].contains("weights")) << rest[0];
    EXPECT_EQ(rest[0]["weights"], whole[0]["weights"]);
    EXPECT_EQ(rest[1]["loss_last"], whole[1]["loss_last"]);
    remove_tree(saved);
  }
}

TEST_F(RanksTest, OneThatNeverComesIsNamedWithTheAddress) {
  const auto answers = train(2, {{"overrides", {"train.samples=8"}}, {"timeout_s", 2}}, /*absent=*/1);
  EXPECT_THAT(answers[0]["error"].get<std::string>(), HasSubstr("127.0.0.1:"));
  EXPECT_THAT(answers[0]["error"].get<std::string>(), HasSubstr("rank 1 of 2 processes did not join within 2 s"));
}

}  // namespace
}  // namespace unidle::train
