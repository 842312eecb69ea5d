// The timeline of a run: what each moment of wall time went into.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "unidle/report/curves.h"

namespace unidle::report {

/// The parts of the steps, then what lies around them.
enum Activity : std::size_t { kStartup = account::kPartCount, kValidate, kCheckpoint, kActivityCount };

/// Share of the bin's time by activity; sums to at most 1: what nobody reported stays empty.
using Bin = std::array<double, kActivityCount>;

/// `count` bins over [start of the run, start + length_s].
std::vector<Bin> bins(const account::Account& account, double length_s, std::size_t count);

/// The legend for all timelines of a page.
std::string timeline_legend();

/// Both pictures of one run's timeline, `length_s` wide so that several runs share one scale. `title` may be the name.
std::string timeline_figure(const account::Account& account, double length_s, const std::string& id,
                            const std::string& title, const std::string& legend_html);

/// Seconds, minutes or hours, by what fits a run of that length: the unit's name and its length in seconds.
struct TimeUnit {
  const char* name;
  double seconds;
};
TimeUnit time_unit(double length_s);

}  // namespace unidle::report
