// The timeline of a run: how each interval of wall time was spent.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "unidle/language/translator.h"
#include "unidle/report/curves.h"

namespace unidle::report {

/// The parts of the steps, then the phases outside of them.
enum Activity : std::size_t { kStartup = account::kPartCount, kValidate, kCheckpoint, kActivityCount };

/// Shares of the bin's time by activity; the sum is at most 1, unreported time stays empty.
using Bin = std::array<double, kActivityCount>;

/// `count` bins over [start of the run, start + length_s].
std::vector<Bin> bins(const account::Account& account, double length_s, std::size_t count);

/// The legend for all timelines of a page.
std::string timeline_legend(const Translator& translator);

/// Both pictures of one run's timeline. `length_s`: the time axis, so that several runs share one scale. `title` may be
/// the name.
std::string timeline_figure(const account::Account& account, double length_s, const std::string& id,
                            const std::string& title, const std::string& legend_html, const Translator& translator);

/// Seconds, minutes or hours, whichever suits a run of that length: the unit's name and its length in seconds.
struct TimeUnit {
  const char* name;
  double seconds;
};
TimeUnit time_unit(double length_s);

}  // namespace unidle::report
