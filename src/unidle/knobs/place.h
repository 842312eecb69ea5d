// A line of a file.
#pragma once

#include <optional>
#include <string>

namespace unidle::knobs {

struct Place {
  std::string file;
  int line = 0;  // from 1
};

/// Reads "file:line"; nothing when it is something else.
std::optional<Place> place_of(const std::string& where);

}  // namespace unidle::knobs
