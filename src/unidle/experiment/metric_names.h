// What a metric's name says about it.
#pragma once

#include <string>

namespace unidle::experiment {

enum class Direction { kUnknown, kLarger, kSmaller };

/// Which direction of a metric is better, by the words of its name: val_acc, roc-auc, rmse_log. Metrics with other
/// names are not judged.
Direction better_direction(const std::string& metric);

bool is_psnr(const std::string& metric);
bool is_loss(const std::string& metric);

}  // namespace unidle::experiment
