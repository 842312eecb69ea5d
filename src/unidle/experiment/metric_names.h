// What the name of a metric tells.
#pragma once

#include <string>

namespace unidle::experiment {

enum class Direction { kUnknown, kLarger, kSmaller };

/// Which way a metric is better, by the words of its name: val_acc, roc-auc, rmse_log. Nothing is judged by a name that
/// does not tell.
Direction better_direction(const std::string& metric);

bool is_psnr(const std::string& metric);
bool is_loss(const std::string& metric);

}  // namespace unidle::experiment
