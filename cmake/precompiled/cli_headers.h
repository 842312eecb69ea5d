// CLI11 takes as long to parse as everything else in a command.
#pragma once

#include <CLI/CLI.hpp>

#include "core_headers.h"
