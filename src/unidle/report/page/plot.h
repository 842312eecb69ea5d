// Plots: panels one above the other that share one horizontal axis. They are complete without a script; the page's
// script reads values and zooms by what is drawn.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "unidle/report/page/html.h"
#include "unidle/report/page/svg.h"

namespace unidle::report {

struct PlotLine {
  std::string name;
  std::string css;  // colour class: "run0", "gpu"
  Line points = {};
  Line raw = {};        // drawn faintly behind, for example the losses that `points` smooths
  bool dots = false;    // mark each point: for a few measured values rather than a continuous signal
  bool filled = false;  // colour the area below
};

/// One colour of stacked columns: its value in each column, from left to right.
struct Layer {
  std::string name;
  std::string css;
  std::vector<double> values;
};

/// A time range that is shaded behind a panel.
struct Band {
  double from;
  double to;
  std::string css;
  std::string name;
};

/// A dashed line with words: horizontal at a value, or vertical at a place of the axis.
struct Guide {
  double at;
  std::string words;
};

struct Axis {
  double from = 0;
  double to = 1;
  std::string label;  // with its unit
  std::string unit;   // for the readout; may be empty
};

struct Panel {
  std::string id;           // unique on the page, letters and digits
  std::string title;        // empty: the figure's says it
  std::string unit;         // of the vertical axis
  std::string description;  // for screen readers
  std::string css;          // its height: "tall", "low" or ""
  std::vector<Band> bands;
  std::vector<PlotLine> lines;
  std::vector<Layer> layers;        // stacked over the whole axis
  std::optional<double> low, high;  // default: from the data
  std::vector<Guide> guides;        // horizontal
  std::vector<Guide> marks;         // vertical

  /// True when there is nothing to draw.
  bool empty() const;
};

struct LegendEntry {
  std::string css;
  std::string label;
};
Html legend(const std::vector<LegendEntry>& entries);

enum class Width { kFull, kHalf };

/// A figure of the panels that have something to draw; nothing when none has. `note`: below the title, may be empty.
Html plot(std::string_view title, std::string_view note, const std::vector<Panel>& panels, const Axis& axis,
          Width width);

}  // namespace unidle::report
