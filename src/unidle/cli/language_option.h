// --lang, for the commands whose texts are all translated; other commands do not have it.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "unidle/language/language.h"

namespace unidle::cli {

/// Adds --lang: "en", "zh" or a locale of either; any other value is a usage error.
void add_language_option(CLI::App& app, std::string& name);

/// The language of the option, otherwise of the environment.
Language chosen_language(const std::string& name);

}  // namespace unidle::cli
