// --lang, for the commands whose texts are all translated. The others have no such option.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "unidle/language/language.h"

namespace unidle::cli {

/// Adds --lang: "en", "zh" or a locale of these; everything else is a usage error.
void add_language_option(CLI::App& app, std::string& name);

/// Of the option, else of the environment.
Language chosen_language(const std::string& name);

}  // namespace unidle::cli
