#include "unidle/diagnose/detail/line_advice.h"

#include <gmock/gmock.h>

namespace unidle::diagnose::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(LineAdvice, MoreProcessesAreNoneForFullCpus) {
  Signals signals;
  signals.cpus_allowed = 2;
  signals.cpus_used = 1.2;
  constexpr const char* kLine = "state, reward, done, _ = env.step(action)";
  EXPECT_THAT(detail::advice_for_line(signals, {}, "train.py:9", kLine), HasSubstr("each in a process of its own"));
  signals.cpus_used = 1.9;
  EXPECT_THAT(detail::advice_for_line(signals, {}, "train.py:9", kLine), HasSubstr("all CPUs are busy"));
}

TEST(LineAdvice, OfAnIteratorForOneBatchIsToKeepIt) {
  Signals signals;
  signals.syncs = {{"numpy", "train.py:9", 100, 100, 1}};  // the sampler's
  EXPECT_THAT(detail::advice_for_line(signals, {}, "train.py:9", "x = next(iter(loader))"), HasSubstr("keep it"));
}

TEST(LineAdvice, OfBatchesOfRayDependsOnTheFunctionThatIsCalled) {
  Signals signals;
  signals.called["train.py:9"] = "ray.data.iterator.DataIterator._iter_batches.<locals>._create_iterator";
  EXPECT_THAT(detail::advice_for_line(signals, {}, "train.py:9", "for batch in batches:"), HasSubstr("materialize()"));
  EXPECT_THAT(detail::advice_for_line({}, {}, "train.py:9", "x = array.data.cpu()"), Not(HasSubstr("materialize()")));
}

TEST(LineAdvice, OfASampleDependsOnTheCallInItsLine) {
  const auto advice = [](std::string_view text) { return detail::advice_for_sample("", text); };
  EXPECT_THAT(advice("row = self.table.iloc[index]"), HasSubstr("arrays or tensors once"));
  EXPECT_THAT(advice("image = Image.open(path).convert('RGB')"), HasSubstr("smaller pictures"));
  EXPECT_THAT(advice("image = self.loader(path)"), HasSubstr("smaller pictures"));
  EXPECT_THAT(advice("wave, rate = librosa.load(path, sr=16000)"), HasSubstr("resample the files once"));
  EXPECT_THAT(advice("mel = self.mel_spectrogram(wave)"), HasSubstr("features once"));
  EXPECT_THAT(advice("ids = self.tokenizer(text, truncation=True)"), HasSubstr("texts into numbers"));
  EXPECT_THAT(advice("x = np.load(self.paths[i])"), HasSubstr("read the files once"));
  EXPECT_THAT(advice("with open(path) as file:"), HasSubstr("read the files once"));
  EXPECT_THAT(advice("picked = np.random.choice(self.items, 4, replace=False)"), HasSubstr("many samples"));
  EXPECT_THAT(advice("sample = copy.deepcopy(self.samples[i])"), HasSubstr("only what changes"));
  EXPECT_THAT(advice("image = self.transform(image)"), HasSubstr("transformations cheaper"));
}

TEST(LineAdvice, NamesThatOnlyResembleACallAreNoReason) {
  for (const char* text :
       {"x = self.data[index]", "ids = self.tokenized[i]", "batch = self.tokenizer.pad(batch)",
        "doc = json.loads(self.lines[i])", "value = pickle.loads(txn.get(key))", "near = self.tree.query(xyz, k=16)",
        "frames = av.open(video)", "row = self.scaler.transform(row)", "grid = F.affine_grid(theta, size)",
        "image = Image.fromarray(self.data[i]).convert('RGB')", "side = np.random.choice(2)",
        "rows = resample(rows, n_samples=4)", "x = self.spectrograms[i]", "x = self.x[i]  # not Image.open(path)"}) {
    EXPECT_EQ(detail::advice_for_sample("", text), "") << text;
  }
}

TEST(LineAdvice, OfASampleDependsOnThePackageThatItCalls) {
  const auto advice = [](std::string_view called) { return detail::advice_for_sample(called, "x = self.read(index)"); };
  EXPECT_THAT(advice("pandas.core.indexing._iLocIndexer.__getitem__"), HasSubstr("arrays or tensors once"));
  EXPECT_THAT(advice("pandas.io.parsers.readers.read_csv"), HasSubstr("read the files once"));
  EXPECT_THAT(advice("torchvision.datasets.folder.pil_loader"), HasSubstr("smaller pictures"));
  EXPECT_THAT(advice("torchvision.transforms.functional.resize"), HasSubstr("transformations cheaper"));
  EXPECT_EQ(advice("transformers.models.clip.processing_clip.CLIPProcessor.__call__"), "");
  EXPECT_EQ(advice(""), "");
}

}  // namespace
}  // namespace unidle::diagnose::testing
