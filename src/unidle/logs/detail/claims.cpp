#include "unidle/logs/detail/claims.h"

#include <algorithm>
#include <array>
#include <string>

#include "unidle/base/characters.h"
#include "unidle/base/substrings.h"
#include "unidle/logs/detail/line_front.h"
#include "unidle/logs/detail/numbers.h"

namespace unidle::logs::detail {

namespace {

constexpr std::size_t kLongestEnd = 80;

std::string_view last_word(std::string_view text) {
  text = trimmed(text);
  return text.substr(text.rfind(' ') + 1);  // also without a blank: npos + 1 is 0
}

/// Successful steps during a run: "Successfully opened dynamic library", "Model loaded successfully".
bool is_step_on_the_way(std::string_view word) {
  static constexpr std::array<std::string_view, 34> kVerbs = {
      "alloc",   "attach",  "authent",  "build",  "built",   "cache", "compil", "connect", "convert",
      "copied",  "creat",   "download", "enabl",  "extract", "fetch", "found",  "got",     "import",
      "init",    "install", "launch",   "load",   "log",     "mount", "numa",   "open",    "pars",
      "preload", "read",    "regist",   "restor", "resum",   "set",   "start"};
  const std::string small = lower(word);
  return std::ranges::any_of(kVerbs, [&](std::string_view verb) { return small.starts_with(verb); });
}

/// The same in Chinese: "成功读取标注好的数据", "成功将IOB格式转化为IOBES格式", "数据加载成功".
bool is_chinese_step(std::string_view line) {
  static constexpr std::array<std::string_view, 14> kVerbs = {"读取",   "加载", "载入", "导入", "转化", "转换", "创建",
                                                              "初始化", "连接", "下载", "打开", "构建", "建立", "启动"};
  return contains_any(line, kVerbs);
}

bool is_success_on_the_way(const LogLine& line, const Hit& hit) {
  std::string_view behind = line.text.substr(hit.end);
  behind.remove_prefix(std::min(behind.find(' '), behind.size()));
  behind = trimmed(behind);
  return is_step_on_the_way(behind.substr(0, behind.find(' '))) ||
         is_step_on_the_way(last_word(line.text.substr(0, hit.begin)));
}

/// "EarlyStopping counter: 9 out of 8", with 8 as the limit.
bool counter_is_full(std::string_view rest) {
  const std::size_t at = rest.find_first_of("0123456789");
  rest.remove_prefix(std::min(at, rest.size()));
  const auto count = take_number(rest);
  const std::size_t next = rest.find_first_of("0123456789");
  rest.remove_prefix(std::min(next, rest.size()));
  const auto most = take_number(rest);
  return count && most && *count >= *most;
}

/// "Early stopping triggered", "Early stopping at epoch 12", "Epoch 00023: early stopping", "Stopping early"; not
/// "early stopping patience: 5".
bool stops_early(std::string_view text, const Hit& hit) {
  const std::string small = lower(text);
  std::string_view rest = std::string_view(small).substr(hit.end);
  while (!rest.empty() && is_letter(rest.front())) {
    rest.remove_prefix(1);
  }
  rest = trimmed(rest);
  if (rest.starts_with("counter")) {
    return counter_is_full(rest);
  }
  static constexpr std::array<std::string_view, 18> kBehind = {
      "!",         ".",       "at ",          "in epoch",     "on epoch",     "after ",
      "because",   "due to",  "as ",          "since ",       "triggered",    "activated",
      "condition", "reached", ": no improve", "- no improve", "] no improve", "] stop"};
  return rest.empty() || small.find("triggered") != std::string::npos || starts_with_any(rest, kBehind) ||
         hit.keyword->text.starts_with("stop") || hit.keyword->text.starts_with("trainer");
}

/// "Training time 0:12:33", as PyTorch's references print it at the end; the time of an epoch has another format.
bool is_whole_time(const LogLine& line, const Hit& hit) {
  std::string_view rest = trimmed(line.text.substr(hit.end));
  return take_digits(rest) && rest.starts_with(":");
}

/// "Training time: 6.9 min", at the beginning of the message. Some programs print it after each part.
bool is_final_time(const LogLine& line) {
  constexpr std::string_view kWords = "training time:";
  const std::string message = lower(message_in(line.text).text);
  std::string_view rest = message;
  rest.remove_prefix(rest.starts_with(kWords) ? kWords.size() : rest.size());
  rest = trimmed(rest);
  return take_number(rest).has_value();
}

/// In lower case, without signs around it; empty if it is longer than a final message.
std::string bare(std::string_view text) {
  static constexpr std::string_view kSigns = " \t=*-#!.~>";
  text.remove_prefix(std::min(text.find_first_not_of(kSigns), text.size()));
  text = text.substr(0, text.find_last_not_of(kSigns) + 1);
  return text.size() <= kLongestEnd ? lower(text) : "";
}

std::string bare_message(const LogLine& line) { return bare(message_in(line.text).text); }

constexpr std::array<std::string_view, 9> kParts = {"epoch", "step",  "fold",  "batch", "iter",
                                                    "round", "stage", "phase", "trial"};
/// Parts if they have a number: "Training of the model finished" is the end of all.
constexpr std::array<std::string_view, 5> kNumberedParts = {"model", "client", "task", "seed", "split"};

/// "3" behind "model", also as " 3", "_3" or " #3".
bool starts_with_number(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" _-#="), text.size()));
  return !text.empty() && is_digit(text.front());
}

/// "Finished training epoch 3", "training complete for fold 2", "Done training model 3".
bool is_of_a_part(std::string_view behind) {
  static constexpr std::array<std::string_view, 3> kBetween = {"for ", "of ", "on "};
  for (const std::string_view word : kBetween) {
    behind.remove_prefix(behind.starts_with(word) ? word.size() : 0);
  }
  return starts_with_any(behind, kParts) || std::ranges::any_of(kNumberedParts, [&](std::string_view word) {
           return behind.starts_with(word) && starts_with_number(behind.substr(word.size()));
         });
}

/// "training Res18 finished": the end of training, with a name; not that of one of its parts.
bool ends_training(std::string_view message) {
  static constexpr std::array<std::string_view, 4> kVerbs = {" finished", " completed", " complete", " done"};
  const auto verb = std::ranges::find_if(kVerbs, [&](std::string_view one) { return message.ends_with(one); });
  constexpr std::string_view kTraining = "training ";
  if (verb == kVerbs.end() || !message.starts_with(kTraining) || message.size() <= kTraining.size() + verb->size()) {
    return false;
  }
  message = message.substr(kTraining.size(), message.size() - kTraining.size() - verb->size());
  return message.find_first_of(" /") == std::string_view::npos && !contains_any(message, kParts) &&
         !is_of_a_part(message);
}

/// "Exit code: 0" of a batch script, "# Ended (code 0) at ..." of Kaldi's.
bool exits_well(std::string_view message) {
  static constexpr std::array<std::string_view, 6> kWords = {
      "exit code", "exit status", "exit_code", "exited with code", "process finished with exit code", "exit"};
  const auto words = std::ranges::find_if(kWords, [&](std::string_view one) { return message.starts_with(one); });
  if (words == kWords.end()) {
    return message.starts_with("ended (code 0) at ");
  }
  message.remove_prefix(words->size());
  return message == ": 0" || message == " 0" || message == "=0";
}

/// "Final test accuracy: 0.97", "Final avg. MSE: 122.7"; not "final layer", "Final results will be saved to runs/3".
bool states_final_results(std::string_view line, const Hit& hit) {
  static constexpr std::array<std::string_view, 12> kWhat = {
      "test ", "avg", "average", "mean", "result", "metric", "score", "acc", "evaluation", "performance", "f1", "auc"};
  static constexpr std::array<std::string_view, 4> kPlans = {" will ", " are ", " function", " after "};
  const std::string rest = lower(line.substr(hit.end));
  return starts_with_any(rest, kWhat) && rest.find_first_of("0123456789") != std::string::npos &&
         !contains_any(rest, kPlans);
}

/// "Evaluating best model on 'test'...", "Testing the best checkpoint"; not "best model written to latest.pt".
bool tests_best(std::string_view line) {
  static constexpr std::array<std::string_view, 4> kTest = {" test", "'test", "\"test", "(test"};
  const std::string text = lower(line);
  return text.starts_with("testing") || (text.starts_with("evaluat") && contains_any(text, kTest));
}

/// "Loss for final step: 0.12."; a program that trains and evaluates in turn prints it after each part.
bool ends_estimator(const LogLine& line) {
  return std::ranges::any_of(line.hits.all(),
                             [](const Hit& hit) { return hit.keyword->text == "loss for final step"; });
}

bool claims(const LogLine& line, const Hit& hit) {
  const std::string_view word = hit.keyword->text;
  if (hit.keyword->word == Word::kEarlyStop) {
    return stops_early(line.text, hit);
  }
  if (hit.keyword->word != Word::kSuccess) {
    return false;
  }
  std::string_view rest = line.text.substr(hit.end);
  while (!rest.empty() && is_letter(rest.front())) {
    rest.remove_prefix(1);  // "training complete" of "training completed"
  }
  if (word == "final ") {
    return states_final_results(line.text, hit);
  }
  if (word.starts_with("best ")) {
    return tests_best(message_in(line.text).text);
  }
  const std::string behind = bare(rest);
  if (word == "end of training" || word == "end training") {
    return behind.empty();  // not "End of training epoch 3"
  }
  if (is_of_a_part(behind)) {
    return false;
  }
  if (word == "training time") {
    return is_whole_time(line, hit) || is_final_time(line);
  }
  if (word == "training took") {
    return bare_message(line).starts_with(word);  // not "Epoch 3: training took"
  }
  if (word == "train finished" || word == "train complete") {
    static constexpr std::array<std::string_view, 5> kBehind = {"in ", "after ", "at ", ":", "("};
    return behind.empty() || starts_with_any(behind, kBehind);  // not "train finished, validating"
  }
  if (word == "completed (exit code") {
    return line.text.substr(hit.end).starts_with(" 0)") && line.text.find("State:") != std::string_view::npos;
  }
  return word == "success" ? !is_success_on_the_way(line, hit) : word != "成功" || !is_chinese_step(line.text);
}

}  // namespace

Claim claim_of(const LogLine& line) {
  static constexpr std::array<std::string_view, 7> kDenials = {
      "not success", "without success", "success rate", "success_rate", "成功率", "未成功", "不成功"};
  static constexpr std::array<std::string_view, 16> kOfParts = {
      "training took",   "train finished",   "train complete",      "end training",
      "done training",   "finish training",  "training ended",      "completed training",
      "final ",          "best model",       "best checkpoint",     "training time",
      "finetuning done", "fine-tuning done", "finetuning complete", "fine-tuning complete"};
  Claim claim = Claim::kNone;
  for (const Hit& hit : line.hits.all()) {
    if (claim != Claim::kEnd && claims(line, hit)) {
      const bool of_part = std::ranges::find(kOfParts, hit.keyword->text) != kOfParts.end();
      claim = of_part ? Claim::kPart : Claim::kEnd;
    }
  }
  return contains_any(lower(line.text), kDenials) ? Claim::kNone : claim;
}

bool ends_all(const LogLine& line) {
  static constexpr std::array<std::string_view, 14> kWhat = {
      "all folds ", "all runs ",         "all experiments ",  "all seeds ",
      "all jobs ",  "cross-validation ", "cross validation ", "loocv ",
      "k-fold cv ", "experiment ",       "the experiment ",   "pipeline ",
      "job ",       "everything "};
  static constexpr std::array<std::string_view, 8> kVerbs = {"is done",  "is finished", "is complete", "completed",
                                                             "complete", "finished",    "done",        "have finished"};
  const std::string message = bare_message(line);
  if (ends_training(message)) {
    return true;
  }
  std::string_view rest = message;
  const auto what = std::ranges::find_if(kWhat, [&](std::string_view one) { return rest.starts_with(one); });
  rest.remove_prefix(what == kWhat.end() ? 0 : what->size());
  const auto verb = std::ranges::find_if(kVerbs, [&](std::string_view one) { return rest.starts_with(one); });
  if (what == kWhat.end() || verb == kVerbs.end()) {
    return false;
  }
  rest.remove_prefix(verb->size());
  static constexpr std::array<std::string_view, 5> kBehind = {" in ", " after ", " at ", ":", ","};
  return rest.empty() || starts_with_any(rest, kBehind);
}

bool is_bare_end(const LogLine& line) {
  static constexpr std::array<std::string_view, 12> kEnds = {
      "done",         "finish",        "finished",     "complete", "completed", "all done",
      "all finished", "all completed", "all complete", "完成",     "全部完成",  "结束"};
  const std::string message = bare_message(line);
  return std::ranges::find(kEnds, message) != kEnds.end() || exits_well(message) || ends_estimator(line);
}

bool names_training(const LogLine& line) {
  static constexpr std::array<std::string_view, 6> kOthers = {"success",         "成功",         "final ", "best model",
                                                              "best checkpoint", "training time"};
  return ends_training(bare_message(line)) || std::ranges::any_of(line.hits.all(), [](const Hit& hit) {
           const bool other = std::ranges::find(kOthers, hit.keyword->text) != kOthers.end();
           return hit.keyword->word == Word::kEarlyStop || (hit.keyword->word == Word::kSuccess && !other);
         });
}

}  // namespace unidle::logs::detail
