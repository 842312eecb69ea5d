#include "unidle/cli/language_option.h"

namespace unidle::cli {

namespace {

std::string problem_with(const std::string& name) {
  const bool english = name == "en" || name.starts_with("en_") || name.starts_with("en-");
  return english || language_of(name) != Language::kEnglish ? "" : "'" + name + "' is no language of ours: en or zh";
}

}  // namespace

void add_language_option(CLI::App& app, std::string& name) {
  app.add_option("--lang", name, "en or zh; by default that of the locale. JSON is always English")
      ->check(CLI::Validator(problem_with, "en|zh"));
}

Language chosen_language(const std::string& name) {
  return name.empty() ? language_of_environment() : language_of(name);
}

}  // namespace unidle::cli
