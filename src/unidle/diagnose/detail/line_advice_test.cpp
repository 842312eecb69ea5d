#include "unidle/diagnose/detail/line_advice.h"

#include <gmock/gmock.h>

namespace unidle::diagnose::testing {
namespace {

using ::testing::HasSubstr;

TEST(LineAdvice, OfASampleDependsOnItsLine) {
  Signals signals;
  const auto advice = [&](std::string_view text) {
    return detail::advice_for_sample(signals, "train.py:9", text);
  };
  EXPECT_EQ(advice("x = self.data[index]"), "");
  EXPECT_THAT(advice("row = self.table.iloc[index]"), HasSubstr("arrays or tensors once"));
  EXPECT_THAT(advice("image = Image.open(path).convert('RGB')"), HasSubstr("smaller files"));
  EXPECT_THAT(advice("image = self.loader(path)"), HasSubstr("smaller files"));
  EXPECT_THAT(advice("wave, rate = librosa.load(path, sr=16000)"), HasSubstr("resample the files once"));
  EXPECT_THAT(advice("mel = self.mel_spectrogram(wave)"), HasSubstr("features once"));
  EXPECT_THAT(advice("ids = self.tokenizer(text, truncation=True)"), HasSubstr("texts into numbers"));
  EXPECT_THAT(advice("x = np.load(self.paths[i])"), HasSubstr("read the files once"));
  EXPECT_THAT(advice("with open(path) as file:"), HasSubstr("read the files once"));
  EXPECT_THAT(advice("picked = np.random.choice(self.items, 4)"), HasSubstr("many samples at once"));
  EXPECT_THAT(advice("sample = copy.deepcopy(self.samples[i])"), HasSubstr("only what changes"));
  EXPECT_THAT(advice("image = self.transform(image)"), HasSubstr("crop before"));
  EXPECT_EQ(detail::advice_for_sample(signals, "", "row = table.iloc[index]"), "") << "of no line";
  signals.called["train.py:9"] = "pandas.core.indexing._iLocIndexer.__getitem__";
  EXPECT_THAT(advice("row = self.row(index)"), HasSubstr("arrays or tensors once")) << "by what it calls";
}

TEST(LineAdvice, OfASampleDependsOnTheFunctionsThatRunThere) {
  Signals signals;
  signals.hot = {{"worker", "input", "train.py:9", "read_csv", 60, 66}, {"train", "train", "train.py:7", "augment", 9, 9}};
  EXPECT_THAT(detail::advice_for_sample(signals, "train.py:9", "rows = self.read(path)"), HasSubstr("read the files"));
  EXPECT_EQ(detail::advice_for_sample(signals, "train.py:7", "x = self.apply(x)"), "") << "makes no samples";
}

}  // namespace
}  // namespace unidle::diagnose::testing
