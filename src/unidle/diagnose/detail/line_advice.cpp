#include "unidle/diagnose/detail/line_advice.h"

#include <algorithm>
#include <vector>

#include "unidle/base/characters.h"
#include "unidle/base/substrings.h"

namespace unidle::diagnose::detail {

namespace {

/// Code with one of `words`, in small letters; and with one of `also`, if there are some.
struct KindOfCode {
  std::vector<std::string_view> words;
  std::vector<std::string_view> also;
  std::string advice;
  std::string when_full = {};     // instead, when all CPUs are busy
  std::string when_several = {};  // instead, when an agent acts in several environments at once already
};

/// The first kind that matches counts.
const std::vector<KindOfCode>& kinds_of_code() {
  static const std::vector<KindOfCode> kKinds = {
      {{"next(iter("}, {}, "make one iterator before the loop, and keep it"},
      {{"iter_torch_batches(", "ray.data.iterator."},
       {},
       "speed up ray.data: preprocess once with materialize(), leave more CPUs to it, or raise prefetch_batches"},
      {{"fsync(", ".flush(", "flush=true"}, {}, "let the operating system write: flush every n-th step, or at the end"},
      {{"torch.save(", "save_checkpoint", "save_pretrained("}, {}, "save every n-th step, or once an epoch"},
      {{"plt.", "savefig", "imshow(", "imsave(", "save_image", "matplotlib"},
       {},
       "draw every n-th step, or after the training"},
      {{"json.dump", "writerow", "to_csv", "pickle.dump", "yaml.dump", ".write(", "log.write"},
       {},
       "collect what is written, and write it every n-th step"},
      {{"open("}, {"\"w", "'w", "\"a", "'a"}, "open the file once, and write every n-th step"},
      {{"print(", "pprint", "set_postfix", "set_description", "logger.", "logging."}, {}, "print every n-th step"},
      {{"env"},
       {".step", ".reset"},
       "play several environments at once, each in a process of its own (as gymnasium.vector.AsyncVectorEnv does), or "
       "make the environment's own steps cheaper",
       "make the environment's own steps cheaper, or play fewer of them: all CPUs are busy, so that more processes "
       "would "
       "gain nothing"},
      {{"categorical", "select_action", "choose_action", "get_action", "rollout", "experience", "trajector"},
       {},
       "play several environments at once (gymnasium.vector), so that one call of the model acts in all of them",
       "",
       "play more environments at once, so that one call of the model acts in all of them, and keep what each step "
       "stores in one tensor that is made before"},
      {{"sklearn", "torchmetrics", "_score(", "roc_auc", "confusion_matrix"},
       {},
       "compute metrics on the device, from whole batches, and once an epoch"},
      {{"deepcopy("}, {}, "copy only what changes"},
      {{".item(", ".tolist("}, {}, "keep the values as tensors, and read them once for many steps"},
      {{".cpu(", ".numpy("}, {}, "keep the results on the device, and copy them once for many steps"},
      {{"random.sample", "buffer.sample", "memory.sample", "np.stack", "np.array(", "torch.stack", "torch.tensor("},
       {},
       "keep the data in one tensor, and index it for a whole batch"},
  };
  return kKinds;
}

/// Code that makes samples: words of its line, and packages that it calls. Small letters.
struct KindOfSample {
  std::vector<std::string_view> words;     // calls, with their parenthesis
  std::vector<std::string_view> packages;  // beginnings of the called function's name
  std::string advice;
};

/// The first kind that matches counts.
const std::vector<KindOfSample>& kinds_of_samples() {
  static const std::vector<KindOfSample> kKinds = {
      {{"glob(", "listdir(", "scandir(", "os.walk(", "iterdir("},
       {},
       "list the folder once, when the data set is made"},
      {{"np.load(", "numpy.load(", "loadtxt(", "genfromtxt(", "read_csv(", "read_pickle(", "read_parquet(",
        "json.load(", "pickle.load(", "torch.load(", "loadmat(", "nib.load(", "with open("},
       {"pandas.io."},
       "read the files once, where they fit into memory; or keep all samples in one file that is mapped (np.load with "
       "mmap_mode)"},
      {{".iloc[", ".loc[", ".iat[", ".at[", "iterrows(", "itertuples("},
       {"pandas."},
       "turn the table into arrays or tensors once, when the data set is made, and index those"},
      {{"librosa.load(", "torchaudio.load(", "soundfile.read(", "sf.read(", "wavfile.read("},
       {"librosa.core.audio.", "soundfile."},
       "resample the files once, ahead, and read only the part that is needed"},
      {{"spectrogram(", "mfcc(", "stft(", "cwt("},
       {"librosa.feature.", "torchaudio.transforms."},
       "compute the features once, ahead, where nothing random comes before them"},
      {{"tokenizer(", "tokenize(", "tokenizer.encode(", "encode_plus(", "jieba.", "nlp("},
       {"transformers.tokenization", "nltk.tokenize", "spacy.", "jieba."},
       "turn the texts into numbers once, ahead"},
      {{"image.open(", "imread(", "read_image(", "decode_image(", "decode_jpeg(", "imdecode(", "pil_loader(",
        "self.loader("},
       {"pil.image.image.load", "pil.imagefile.", "torchvision.datasets.folder.", "torchvision.io."},
       "store smaller pictures, where they are much larger than what the model sees (crops then show other details)"},
      {{"deepcopy("}, {"copy.deepcopy"}, "copy only what changes"},
      {{"replace=false"}, {}, "draw once for many samples: without replacement, each call goes through all choices"},
      {{"self.transform(", "self.transforms(", "self.augment", "albumentations."},
       {"torchvision.transforms.", "albumentations.", "pil.image.", "pil.imageops."},
       "make the transformations cheaper: make pictures smaller before the others, or transform whole batches of "
       "tensors "
       "(torchvision.transforms.v2)"},
  };
  return kKinds;
}

/// All that is known of the code there, in small letters.
std::string code_at(const Signals& signals, const std::string& where, std::string_view text) {
  std::string code = " " + std::string(text) + " ";
  for (const HotLine& line : signals.hot) {
    if (line.where == where && line.phase == "between" && code.find(line.function) == std::string::npos) {
      code += line.function + " ";
    }
  }
  if (const auto called = signals.called.find(where); called != signals.called.end()) {
    code += called->second + " ";
  }
  for (const SyncCall& sync : signals.syncs.value_or(std::vector<SyncCall>{})) {
    code += sync.where == where ? "." + sync.call + "( " : "";
  }
  return lower(code);
}

/// All CPUs are busy already, so that more processes would gain nothing.
bool cpus_are_full(const Signals& signals, const Policy& policy) {
  return signals.cpus_used && signals.cpus_allowed && *signals.cpus_used >= policy.cpus_full * *signals.cpus_allowed;
}

}  // namespace

std::string advice_for_line(const Signals& signals, const Policy& policy, const std::string& where,
                            std::string_view text) {
  const std::string code = where.empty() ? "" : code_at(signals, where, text);
  for (const KindOfCode& kind : kinds_of_code()) {
    if (contains_any(code, kind.words) && (kind.also.empty() || contains_any(code, kind.also))) {
      const bool several = signals.operations && signals.operations->preview_samples > 1;
      return !kind.when_several.empty() && several                       ? kind.when_several
             : !kind.when_full.empty() && cpus_are_full(signals, policy) ? kind.when_full
                                                                         : kind.advice;
    }
  }
  return "";
}

std::string advice_for_sample(std::string_view called, std::string_view text) {
  const std::string code = lower(std::string(text.substr(0, text.find(" #"))));
  const std::string function = lower(std::string(called));
  for (const KindOfSample& kind : kinds_of_samples()) {
    if (contains_any(code, kind.words) ||
        std::ranges::any_of(kind.packages, [&](std::string_view package) { return function.starts_with(package); })) {
      return kind.advice;
    }
  }
  return "";
}

}  // namespace unidle::diagnose::detail
