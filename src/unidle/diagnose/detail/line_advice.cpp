#include "unidle/diagnose/detail/line_advice.h"

#include <functional>
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
};

/// The first kind that matches counts.
const std::vector<KindOfCode>& kinds_of_code() {
  static const std::vector<KindOfCode> kKinds = {
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
       "make the environment's own steps cheaper"},
      {{"categorical", "select_action", "choose_action", "get_action", "rollout", "experience", "trajector"},
       {},
       "play several environments at once (gymnasium.vector), so that one call of the model acts in all of them"},
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

/// The same for code that makes samples.
const std::vector<KindOfCode>& kinds_of_sample_code() {
  static const std::vector<KindOfCode> kKinds = {
      {{".iloc[", ".loc[", ".iat[", ".at[", "iterrows", ".query(", "pandas."},
       {},
       "turn the table into arrays or tensors once, when the data set is made, and index those"},
      {{"librosa.load", "torchaudio.load", "soundfile.", "sf.read(", "wavfile", "resample("},
       {},
       "cut and resample the files once, ahead, and store what the model takes"},
      {{"spectrogram", "mfcc", "stft(", "pyworld", "wavelet"},
       {},
       "compute the features once, ahead, and draw what is random from them"},
      {{"tokeniz", "encode_plus", "nltk", "spacy", "jieba"}, {}, "turn the texts into numbers once, ahead"},
      {{"image.open", "imread", ".convert(", "read_image", "decode_image", "decode_jpeg", "imdecode", "pil_loader",
        "default_loader", "self.loader("},
       {},
       "store smaller files: resize them once, ahead, to little more than the model sees"},
      {{"np.load(", "numpy.load", "loadtxt", "genfromtxt", "read_csv", "read_pickle", "json.load", "pickle.load",
        "torch.load(", "loadmat(", "h5py", "nib.load", "open("},
       {},
       "read the files once into one array, in memory or mapped from one file (np.load with mmap_mode)"},
      {{"deepcopy("}, {}, "copy only what changes"},
      {{"np.random.choice(", "randperm(", "permutation("},
       {},
       "draw the numbers for many samples at once: each call goes through all that it chooses from"},
      {{"transform", "augment", "resize", "rotate(", "affine", "elastic", "jitter", "blur"},
       {},
       "crop before costly transformations, or transform whole batches of tensors (torchvision.transforms.v2)"},
  };
  return kKinds;
}

/// All that is known of the code there, in small letters.
std::string code_at(const Signals& signals, const std::string& where, std::string_view text,
                    const std::function<bool(const HotLine&)>& counts) {
  std::string code = " " + std::string(text) + " ";
  for (const HotLine& line : signals.hot) {
    if (line.where == where && counts(line) && code.find(line.function) == std::string::npos) {
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

std::string first_match(const std::vector<KindOfCode>& kinds, std::string_view code) {
  for (const KindOfCode& kind : kinds) {
    if (contains_any(code, kind.words) && (kind.also.empty() || contains_any(code, kind.also))) {
      return kind.advice;
    }
  }
  return "";
}

}  // namespace

std::string advice_for_line(const Signals& signals, const std::string& where, std::string_view text) {
  const auto is_between = [](const HotLine& line) { return line.phase == "between"; };
  return where.empty() ? "" : first_match(kinds_of_code(), code_at(signals, where, text, is_between));
}

std::string advice_for_sample(const Signals& signals, const std::string& where, std::string_view text) {
  const auto makes_samples = [](const HotLine& line) { return line.role == "worker" || line.phase == "input"; };
  return where.empty() ? "" : first_match(kinds_of_sample_code(), code_at(signals, where, text, makes_samples));
}

}  // namespace unidle::diagnose::detail
