#include "unidle/experiment/metric_names.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <utility>

#include "unidle/base/characters.h"

namespace unidle::experiment {

namespace {

std::set<std::string> words_of(const std::string& name) {
  std::set<std::string> words;
  std::string word;
  for (const char c : lower(name) + " ") {
    if (is_letter(c) || is_digit(c)) {
      word += c;
    } else if (!word.empty()) {
      words.insert(std::exchange(word, {}));
    }
  }
  return words;
}

template <std::size_t N>
bool names_one_of(const std::string& name, const std::array<std::string_view, N>& known) {
  const std::set<std::string> words = words_of(name);
  return std::any_of(known.begin(), known.end(), [&](std::string_view word) {
    // Short words occur inside others ("acc" in "accumulated"), so they must be whole words.
    return word.size() > 3 ? lower(name).find(word) != std::string::npos : words.contains(std::string(word));
  });
}

}  // namespace

bool is_psnr(const std::string& metric) { return names_one_of(metric, std::array<std::string_view, 1>{"psnr"}); }

bool is_loss(const std::string& metric) { return names_one_of(metric, std::array<std::string_view, 1>{"loss"}); }

Direction better_direction(const std::string& metric) {
  static constexpr std::array<std::string_view, 21> kSmaller = {
      "loss", "error", "err", "rmse", "mse", "mae",      "mape",     "perplexity", "ppl", "nll",         "wer",
      "cer",  "fid",   "bce", "kld",  "ece", "distance", "surprise", "deviation",  "bpc", "crossentropy"};
  static constexpr std::array<std::string_view, 20> kLarger = {
      "psnr",   "ssim",      "acc", "accuracy", "auc", "auroc", "f1",   "r2",    "hit",  "hits",
      "recall", "precision", "iou", "miou",     "map", "dice",  "bleu", "rouge", "ndcg", "mrr"};
  if (words_of(metric).contains("scale")) {
    return Direction::kUnknown;  // loss_scale of mixed precision is not a loss
  }
  return names_one_of(metric, kSmaller)  ? Direction::kSmaller
         : names_one_of(metric, kLarger) ? Direction::kLarger
                                         : Direction::kUnknown;
}

}  // namespace unidle::experiment
