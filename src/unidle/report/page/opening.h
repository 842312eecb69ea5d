// The first screen: the answer, the change that it names, and what it can gain.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "unidle/base/stats.h"
#include "unidle/language/translator.h"
#include "unidle/report/comparison.h"
#include "unidle/report/page.h"
#include "unidle/report/page/html.h"
#include "unidle/report/page/shown.h"

namespace unidle::report {

/// With a first letter of ASCII as a capital.
std::string with_capital(std::string words);

/// Name, answer and lines below it, at the top of the page.
Html opening(std::string_view names, std::string_view answer, const Html& below);

/// The recorded command; nothing when it is unknown.
Html command_html(const RunData& run);

/// How the run ended, its length, its device.
Html run_words(const Entry& entry, const Summary& summary, const Translator& translator);

/// A bar for a rate in samples/s.
struct RateBar {
  std::string label;
  double value = 0;
  std::optional<Interval> interval;
  std::string css;   // colour class
  std::string note;  // after the value; may be empty
};
/// On one scale that begins at 0; nothing without a positive rate.
Html rate_bars(const std::vector<RateBar>& bars, const std::string& unit);

/// What the leading finding can gain: the rate of the whole run now and at most. Nothing when nobody knows.
Html gain_bars(const Shown& shown, const diagnose::Diagnosis& diagnosis, const Translator& translator);

struct Tile {
  std::string value;
  std::string label;
  std::string note = {};  // smaller, below
};
Html tiles_html(const std::vector<Tile>& tiles);
/// The most important figures of one run.
std::vector<Tile> key_figures(const Summary& summary, const Translator& translator);
/// Adds the tile with the FLOPs per step, their rate and the MFU, if the device's peak is known.
void add_arithmetic(const diagnose::Arithmetic& arithmetic, const Translator& translator, std::vector<Tile>& tiles);

}  // namespace unidle::report
