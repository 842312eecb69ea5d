// From a record to the lines of the plots, with as many points as a picture can show.
#pragma once

#include <string_view>
#include <vector>

#include "unidle/language/translator.h"
#include "unidle/report/page/plot.h"
#include "unidle/report/page/shown.h"

namespace unidle::report {

/// Means over at most `most` equal intervals of x. Lines with fewer points stay unchanged. REQUIRES: sorted by x.
Line thinned(const Line& points, std::size_t most);

/// A series of all its subjects, or of one, over the time since the start of the run.
Line series_line(const Shown& shown, std::string_view series, double scale, double unit_s,
                 std::string_view subject = {});

/// Samples/s of training steps. Time outside of steps (start-up, validation, checkpoints) is left out: where it fills
/// an interval, the line has a gap.
Line throughput_line(const Shown& shown, double length_s, double unit_s);

/// The loss with what smooths it, over the samples seen.
PlotLine loss_line(const Shown& shown);

/// A metric over the samples seen.
PlotLine metric_line(const Shown& shown, const std::string& name);

/// Names of all metrics but the loss that some run reported.
std::vector<std::string> metric_names(const std::vector<Shown>& runs);

}  // namespace unidle::report
