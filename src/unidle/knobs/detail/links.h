// Values that stand for the value of another key: ${a.b}, @a, %(a)s.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "unidle/knobs/config_file.h"

namespace unidle::knobs::detail {

/// True when the text is, or contains, something that the program replaces: ${...}, %(...)s, @name.
bool is_computed(std::string_view value);

/// The scalar that finally holds the literal: `scalar` itself, or what its whole value refers to, over as many steps as
/// it takes. nullptr when the value is computed in another way (a resolver call, text around the reference), refers to
/// nothing in this file, or in a circle.
const Scalar* literal_of(const ConfigFile& file, const Scalar& scalar);

}  // namespace unidle::knobs::detail
