#include "unidle/diagnose/detail/line_advice.h"

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
      {{".item(", ".tolist("}, {}, "keep the values as tensors, and read them once for many steps"},
      {{".cpu(", ".numpy("}, {}, "keep the results on the device, and copy them once for many steps"},
      {{"random.sample", "buffer.sample", "memory.sample", "np.stack", "np.array(", "torch.stack", "torch.tensor("},
       {},
       "keep the data in one tensor, and index it for a whole batch"},
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

}  // namespace

std::string advice_for_line(const Signals& signals, const std::string& where, std::string_view text) {
  const std::string code = where.empty() ? "" : code_at(signals, where, text);
  for (const KindOfCode& kind : kinds_of_code()) {
    if (contains_any(code, kind.words) && (kind.also.empty() || contains_any(code, kind.also))) {
      return kind.advice;
    }
  }
  return "";
}

}  // namespace unidle::diagnose::detail
