#include "workloads/protein/protein.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cmath>
#include <set>
#include <thread>

#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/data/loader.h"
#include "workloads/protein/model.h"
#include "workloads/protein/peptides.h"
#include "workloads/testing/small_run.h"

namespace unidle::workloads::protein {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Protein : public ::testing::Test {
 protected:
  std::vector<std::string> settings(std::vector<std::string> more) const {
    more.insert(more.begin(), {"data.folder=" + (folder_.path() / "data").string(),
                               "cache.folder=" + (folder_.path() / "cache").string(), "model.width=32", "model.depth=1",
                               "batch.size=4", "optimizer.lr=0.003", "validation.interval=0", "validation.batch=4"});
    return more;
  }
  std::string prepare(std::vector<std::string> more = {}) const {
    more.insert(more.begin(), {"prepare.source=generated", "prepare.samples=40"});
    const train::Config config = train::Config::from_text("workload: protein\n", "protein.yaml", settings(more));
    return find_workload(config).prepare(config);
  }
  train::Config config(const std::string& cache = "off") const {
    return train::Config::from_text("workload: protein\n", "protein.yaml", settings({"cache.features=" + cache}));
  }

  TemporaryFolder folder_;
};

TEST(PeptidesOf, TakesTheFirstCellsThatArePeptides) {
  EXPECT_THAT(peptides_of("826,1,Random,ACP\nGIGKF,1\r\nsequence\nGIGKF\nACX\nACDE\nKLLKL 2\n"),
              ElementsAre("GIGKF", "KLLKL"));
}

TEST_F(Protein, ItemsAreOfLikeLengthAndAnEpochHasEachPeptideOnce) {
  Structures structures(config());
  std::vector<std::string> sequences;
  for (std::size_t i = 0; i < 40; ++i) {
    sequences.push_back(std::string(5 + i % 10, kAminoAcids[i % 20]) + kAminoAcids[i / 20]);
  }
  const PeptideSource source(sequences, structures, 4, false);
  EXPECT_EQ(source.items(), 10);
  data::Loader loader(source, {.batch = 4, .seed = 2, .epoch_end = data::EpochEnd::kShort});
  for (int epoch = 0; epoch < 2; ++epoch) {
    std::multiset<std::string> seen;
    std::int64_t places = 0;
    std::int64_t residues = 0;
    for (int batch = 0; batch < 10; ++batch) {
      const data::Batch one = loader.next();
      const std::int64_t longest = one.extent(0);
      for (std::int64_t row = 0; row < 4; ++row) {
        const auto* tokens = reinterpret_cast<const std::int64_t*>(one.field(0)) + row * longest;
        const std::int64_t length = reinterpret_cast<const std::int64_t*>(one.field(1))[row];
        std::string text;
        for (std::int64_t i = 0; i < length; ++i) {
          text += kAminoAcids[static_cast<std::size_t>(tokens[i] - 1)];
        }
        seen.insert(text);
        places += longest;
        residues += length;
      }
    }
    EXPECT_EQ(seen, std::multiset<std::string>(sequences.begin(), sequences.end()));
    EXPECT_LT(places, residues * 3 / 2);
  }
}

TEST_F(Protein, BatchesForAGpuHaveFewLengths) {
  Structures structures(config());
  std::vector<std::string> sequences;
  for (std::int64_t length = kShortest; length <= kLongest; ++length) {
    sequences.push_back(std::string(static_cast<std::size_t>(length), 'A'));
  }
  const PeptideSource source(sequences, structures, 1, true, kLengthsOfGpu);
  std::set<std::int64_t> lengths;
  for (std::int64_t item = 0; item < source.items(); ++item) {
    const std::int64_t length = kLongest - item;  // the longest first
    EXPECT_GE(source.extent(item, kTokens), length);
    EXPECT_LT(source.extent(item, kTokens), length + kLengthsOfGpu);
    lengths.insert(source.extent(item, kTokens));
  }
  EXPECT_THAT(lengths, ElementsAre(8, 16, 24, 32, 40, 48, 50));
}

TEST_F(Protein, Learns) {
  EXPECT_THAT(prepare(), HasSubstr("generated"));
  const train::Summary begin = workloads::train_small("protein", settings({"train.samples=4"}));
  const train::Summary end =
      workloads::train_small("protein", settings({"train.samples=400", "cache.features=memory"}));
  EXPECT_LT(end.metric.at("token_surprise"), begin.metric.at("token_surprise"));
  EXPECT_EQ(end.effective.at("model.width"), "32");
  EXPECT_EQ(end.effective.at("cache.features"), "memory");
}

TEST_F(Protein, WhereFeaturesComeFromChangesNothing) {
  EXPECT_THAT(prepare({"cache.features=disk"}), HasSubstr("features of 40 computed"));
  EXPECT_THAT(prepare({"cache.features=disk"}), HasSubstr("features of 0 computed"));
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.end(), {"train.samples=24", "data.group=4"});
    return workloads::train_small("protein", settings(more));
  };
  const train::Summary off = with({"cache.features=off"});
  for (const train::Summary& other :
       {with({"cache.features=disk", "loader.workers=2"}), with({"cache.features=memory", "metrics.interval=3"})}) {
    EXPECT_EQ(off.loss_first, other.loss_first);
    EXPECT_EQ(off.loss_last, other.loss_last);
    EXPECT_EQ(off.metric, other.metric);
  }
}

TEST_F(Protein, LayersThatAreRecomputedLearnTheSame) {
  prepare();
  for (const char* precision : {"precision.amp=off", "precision.amp=bf16"}) {
    const auto with = [&](const char* checkpointing) {
      return workloads::train_small("protein", settings({"train.samples=16", precision, checkpointing}));
    };
    const train::Summary plain = with("grad.checkpointing=false");
    const train::Summary again = with("grad.checkpointing=true");
    EXPECT_EQ(again.effective.at("grad.checkpointing"), "true");
    EXPECT_EQ(plain.loss_last, again.loss_last) << precision;
    EXPECT_EQ(plain.metric, again.metric) << precision;
  }
}

TEST_F(Protein, FeaturesOfTheNextBatchesAreComputedWhileNobodyAsksForThem) {
  prepare();
  std::vector<std::string> sequences;
  for (std::size_t i = 0; i < 40; ++i) {
    sequences.push_back(std::string(5, kAminoAcids[i % 20]) + kAminoAcids[i / 20]);
  }
  Structures structures(config("disk"));
  const PeptideSource source(sequences, structures, 2, false);
  data::Loader loader(source, {.batch = 4, .seed = 2});  // made by the training thread, which continues training
  const data::Batch first = loader.next();
  cache::Options options;
  options.path = folder_.path() / "cache";
  cache::Store store(options);
  while (store.statistics().entries < sequences.size()) {
    std::this_thread::yield();
  }
  // Other caches have no workers to compute ahead.
  EXPECT_EQ(PeptideSource(sequences, structures, 2, false).look_ahead(), 128);
  Structures in_memory(config("memory"));
  EXPECT_EQ(PeptideSource(sequences, in_memory, 2, false).look_ahead(), 0);
}

TEST_F(Protein, ResumesExactly) {
  prepare();
  expect_resumes_exactly("protein", settings({"data.group=4"}), 32, folder_.path() / "checkpoints");
}

TEST_F(Protein, SaysWhatIsMissing) {
  try {
    workloads::train_small("protein", settings({}));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), 3);
    EXPECT_THAT(error.hint(), HasSubstr("unidle-train protein.yaml --prepare"));
  }
}

TEST(ProteinModel, IsAsLargeAsItsPageSays) {
  std::int64_t count = 0;
  for (const at::Tensor& parameter : Model(320, 8).parameters()) {
    count += parameter.numel();
  }
  EXPECT_EQ(count, 13733232);
}

TEST(ProteinModel, WhatLiesBehindTheEndChangesNothing) {
  at::manual_seed(3);
  Model model(32, 1);
  model.eval();
  const at::NoGradGuard no_grad;
  const std::int64_t length = 6;
  Model::Peptides peptides{at::randint(1, 21, {2, length}, at::kLong), at::tensor({6L, 4L}),
                           at::randn({2, length, kResidueFeatures}), at::randn({2, length, 3}),
                           at::zeros({2, length, kLongest, 2})};
  const at::Tensor step = at::full({2}, 300, at::kLong);
  const at::Tensor noise = at::randn({2, length, 32});
  const Model::Parts before = model.denoise(peptides, step, noise);
  EXPECT_TRUE(at::isfinite(before.error).all().item<bool>());
  peptides.tokens[1].narrow(0, 4, 2).fill_(7);
  const Model::Parts after = model.denoise(peptides, step, noise);
  EXPECT_TRUE(at::equal(before.error[0], after.error[0]));
  EXPECT_LT((before.error[1] - after.error[1]).narrow(0, 0, 4).abs().max().item<double>(), 1e-5);
}

TEST(ProteinModel, NoiseFollowsTheSqrtSchedule) {
  const at::Tensor share = signal_share(at::tensor({1L, 250L, 1000L}));
  EXPECT_NEAR(share[0].item<double>(), 1 - std::sqrt(0.0011), 1e-6);
  EXPECT_NEAR(share[1].item<double>(), 1 - std::sqrt(0.2501), 1e-6);
  EXPECT_EQ(share[2].item<double>(), 0);
}

}  // namespace
}  // namespace unidle::workloads::protein
