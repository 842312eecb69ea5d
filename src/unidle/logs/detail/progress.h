// Numbers beside words: "epoch 3/10", "loss=0.5", "12.5it/s", progress bars.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace unidle::logs::detail {

struct Count {
  double value = 0;
  std::optional<double> total;
  /// The second count in "Epoch: [3][120/5000]", "epoch 3: 120 / 5000" and "Epoch: 3 [12800/60000 (21%)]"; it counts
  /// samples if a percentage follows.
  std::optional<double> inner;
  double inner_total = 0;
  bool inner_is_samples = false;
  bool plural = false;  // "iters: 100", which without a total may be a setting
};

/// Consumes ": ", "=", "[ " and similar, the full-width colon, and blanks; returns their number.
std::size_t skip_signs(std::string_view& text);
/// Consumes a unit at the front of `text` and returns its seconds; 0 when there is none.
double take_unit(std::string_view& text);

/// The count after the word that ends at `end`: "epoch 3/10", "step=40", "iteration: 40 of 200", "迭代 500". Nothing
/// for "epochs: 150", which is a setting, and for "step_time".
std::optional<Count> count_after(std::string_view line, std::size_t end);
/// The count before the word that begins at `begin`: "第 3/10 轮".
std::optional<Count> count_before(std::string_view line, std::size_t begin);

/// "313/313 [=====>...] - 338s", "313/313 ━━━━━ 338s": the steps of an epoch in Keras's format.
std::optional<Count> count_of_keras(std::string_view line);
/// "[41/50] loss 0.11".
std::optional<Count> count_in_brackets(std::string_view line);
/// "  104/150     17.1G     1.38": the epoch in the bar label of YOLOv5 and Ultralytics.
std::optional<Count> count_of_yolo(std::string_view label);
/// Whether the count refers to an earlier time: "Best accuracy 0.8 (at Epoch 5)", "best epoch: 5", "Loaded the model at
/// epoch 30".
bool is_of_earlier(std::string_view line, std::size_t begin);

/// The value after a word, including nan and inf. Nothing when none follows within a few characters.
std::optional<double> value_after(std::string_view line, std::size_t end);
/// Whether value_after would be finite; nothing when no value follows. Usually does not compute the value.
std::optional<bool> finite_after(std::string_view line, std::size_t end);
/// The value before a unit: "123.4 samples/s".
std::optional<double> value_before(std::string_view line, std::size_t begin);
/// The word or number after "key:" or "key=": "True", "1024", "cuda:0"; empty when none follows.
std::string_view token_after(std::string_view line, std::size_t end);
/// A duration after a word: "took 12.3 s", "time: 0:01:23", "耗时 12秒"; a number without a unit counts as seconds only
/// if `bare` is true.
std::optional<double> seconds_after(std::string_view line, std::size_t end, bool bare);

/// "0:01:48", "3 days, 17:51:32": Python's format of a timedelta; "3-17:51:32": Slurm's.
std::optional<double> seconds_of_timedelta(std::string_view text);

/// A progress bar in tqdm's format.
struct Bar {
  std::string_view label;  // the text before the percentage
  double done = 0;
  double total = 0;
  double elapsed_s = 0;
  bool counts_samples = false;  // its unit is "img" or another word for a sample
};
/// `bar_at`: position of "%|".
std::optional<Bar> read_bar(std::string_view line, std::size_t bar_at);
/// Whether the bar belongs to preparation before the loop: a download, tokenizing, loading a model.
bool is_of_preparation(std::string_view line, std::size_t bar_at);

}  // namespace unidle::logs::detail
