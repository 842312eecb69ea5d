// The plots of one or several runs.
#pragma once

#include <vector>

#include "unidle/language/translator.h"
#include "unidle/report/page/html.h"
#include "unidle/report/page/shown.h"

namespace unidle::report {

/// The runs over wall time, in panels that share one axis: throughput, where the time went, how busy CPUs and GPU were.
/// Nothing when no run has anything to draw.
Html over_time(const std::vector<Shown>& runs, const Translator& translator);

/// Memory and power of the GPU, the loss and the metrics, each as a figure of half the width.
Html small_plots(const std::vector<Shown>& runs, const Translator& translator);

/// A lane for each training process and each GPU, when there are several of either.
Html lanes(const Shown& shown, const Translator& translator);

}  // namespace unidle::report
