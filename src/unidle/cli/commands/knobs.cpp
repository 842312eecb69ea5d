// `unidle knobs`: the settings that unidle understands, and where a configuration sets them.
#include "unidle/knobs/knob.h"

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "unidle/base/json.h"
#include "unidle/base/printable.h"
#include "unidle/base/terminal.h"
#include "unidle/base/units.h"
#include "unidle/cli/subcommand.h"
#include "unidle/knobs/recognize.h"

namespace unidle::cli::commands {

namespace {

using nlohmann::json;

struct Arguments {
  std::vector<std::string> files;
  std::string format = "text";
  bool others = false;
};

json to_json(const knobs::Recognized& setting) {
  return {{"knob", setting.knob},
          {"value", setting.value},
          {"means", setting.means ? json(setting.means->to_text()) : json()},
          {"says", knobs::to_string(setting.meaning)},
          {"phase", knobs::to_string(setting.phase)},
          {"path", setting.path},
          {"source", setting.source},
          {"literal", setting.literal.empty() ? json() : json(setting.literal)},
          {"line", setting.line}};
}

json to_json(const knobs::Recognition& recognition) {
  json settings = json::array();
  for (const knobs::Recognized& setting : recognition.knobs) {
    settings.push_back(to_json(setting));
  }
  json others = json::array();
  for (const knobs::OtherKey& key : recognition.others) {
    others.push_back({{"path", key.path}, {"value", key.value}, {"line", key.line}});
  }
  json configured = json::object();
  for (const auto& [knob, value] : knobs::configured(recognition)) {
    configured[knob] = {{"value", value.value.to_text()}, {"path", value.path}, {"line", value.line}};
  }
  return {{"file", recognition.file},
          {"framework", recognition.framework},
          {"knobs", settings},
          {"configured", configured},
          {"others", others}};
}

/// What a reader must know besides knob and value.
std::string remark(const knobs::Recognized& setting) {
  std::string text;
  if (setting.phase == knobs::Phase::kValidation) {
    text = "validation";
  }
  if (setting.meaning == knobs::Meaning::kGlobalBatch) {
    text += text.empty() ? "over all devices" : ", over all devices";
  } else if (setting.meaning == knobs::Meaning::kOption) {
    text += text.empty() ? "option" : ", option";
  }
  if (!setting.literal.empty() && setting.literal != setting.path) {
    text += (text.empty() ? "" : ", ") + fmt::format("from {}", printable_line(setting.literal));
  }
  return text.empty() ? "" : " (" + text + ")";
}

void print_text(const knobs::Recognition& recognition, bool others) {
  print_to(stdout, "{}: {}, {}\n", recognition.file, recognition.framework,
           format_count(recognition.knobs.size(), "setting"));
  for (const knobs::Recognized& setting : recognition.knobs) {
    print_to(stdout, "  {:<26} {:<12} {}:{}: {}{}\n", setting.knob,
             printable_line(setting.means.value_or(setting.value).to_text()), recognition.file, setting.line,
             printable_line(setting.path), remark(setting));
  }
  for (const knobs::OtherKey& key : others ? recognition.others : std::vector<knobs::OtherKey>()) {
    print_to(stdout, "  {:<26} {:<12} {}:{}: {}\n", "-", printable_line(key.value), recognition.file, key.line,
             printable_line(key.path));
  }
}

int recognize(const Arguments& arguments) {
  json documents = json::array();
  for (const std::string& file : arguments.files) {
    const knobs::Recognition recognition = knobs::recognize(std::filesystem::path(file));
    if (arguments.format == "json") {
      documents.push_back(to_json(recognition));
    } else {
      print_text(recognition, arguments.others);
    }
  }
  if (arguments.format == "json") {
    const json document = {{"schema", "unidle.knobs/1"}, {"files", documents}};
    print_to(stdout, "{}\n", json_text(document));
  }
  return 0;
}

int list(const Arguments& arguments) {
  json documents = json::array();
  for (const knobs::Knob* knob : knobs::all_catalogue()) {
    if (arguments.format == "json") {
      documents.push_back({{"knob", knob->name},
                           {"class", knobs::to_string(knob->knob_class)},
                           {"type", knobs::to_string(knob->type)},
                           {"choices", knob->choices},
                           {"default", knob->fallback ? knob->fallback->to_text() : ""},
                           {"at_run_time", knob->change.at_run_time},
                           {"explanation", knob->explanation}});
    } else {
      print_to(stdout, "{:<26} {:<9} {}\n", knob->name, knobs::to_string(knob->knob_class), knob->explanation);
    }
  }
  if (arguments.format == "json") {
    print_to(stdout, "{}\n", json_text(json{{"schema", "unidle.knobs/1"}, {"knobs", documents}}));
  }
  return 0;
}

void add_format(CLI::App& app, Arguments& arguments) {
  app.add_option("--format", arguments.format, "text or json")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
}

std::function<int()> setup(CLI::App& app) {
  auto arguments = std::make_shared<Arguments>();
  app.require_subcommand(0, 1);
  add_format(app, *arguments);
  CLI::App* known = app.add_subcommand("list", "List all knobs; the default");
  add_format(*known, *arguments);
  CLI::App* found = app.add_subcommand("recognize", "Find the knobs that configuration files set, and where");
  found->add_option("files", arguments->files, "YAML, JSON, TOML or Python files")->required();
  found->add_flag("--all", arguments->others, "Also show the keys that are no knobs");
  add_format(*found, *arguments);
  return [arguments, found] { return found->parsed() ? recognize(*arguments) : list(*arguments); };
}

}  // namespace

const Subcommand& knobs() {
  static const Subcommand kCommand{
      "knobs",
      "List the knobs, or find them in configuration files",
      "Examples:\n"
      "  unidle knobs\n"
      "  unidle knobs recognize train.yaml ds_config.json\n",
      setup,
  };
  return kCommand;
}

}  // namespace unidle::cli::commands
