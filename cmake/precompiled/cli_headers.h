// CLI11 takes as long to parse as all else in a command.
#pragma once

#include <CLI/CLI.hpp>

#include "core_headers.h"
