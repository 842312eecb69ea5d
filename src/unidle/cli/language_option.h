// --lang, for the commands whose texts are all translated; other commands do not have it. unidle-train has it as well.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "unidle/language/language.h"

namespace unidle::cli {

/// Adds --lang: "en", "zh" or a locale of either; any other value is a usage error.
inline void add_language_option(CLI::App& app, std::string& name) {
  const auto problem_with = [](const std::string& given) {
    const bool english = given == "en" || given.starts_with("en_") || given.starts_with("en-");
    return english || language_of(given) != Language::kEnglish
               ? ""
               : "'" + given + "' is not a supported language; use en or zh";
  };
  app.add_option("--lang", name, "en or zh; by default that of the locale. JSON is always English")
      ->check(CLI::Validator(problem_with, "en|zh"));
}

/// The language of the option, otherwise of the environment.
inline Language chosen_language(const std::string& name) {
  return name.empty() ? language_of_environment() : language_of(name);
}

}  // namespace unidle::cli
