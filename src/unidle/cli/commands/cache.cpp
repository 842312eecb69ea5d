// `unidle cache`: lists, verifies, fills and trims a feature cache.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "unidle/base/clock.h"
#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/base/json.h"
#include "unidle/base/terminal.h"
#include "unidle/base/units.h"
#include "unidle/cache/command_predictor.h"
#include "unidle/cache/features.h"
#include "unidle/cache/inputs.h"
#include "unidle/cache/store.h"
#include "unidle/cli/engine.h"
#include "unidle/cli/language_option.h"
#include "unidle/cli/number_option.h"
#include "unidle/cli/signal_stop.h"
#include "unidle/cli/subcommand.h"

namespace unidle::cli::commands {

namespace {

using nlohmann::json;

struct Arguments {
  std::string path;
  std::string format = "text";
  std::optional<std::uint64_t> max_bytes;
  std::string key;
  std::string name;
  std::string inputs;
  std::string predictor;
  std::string parameters = "{}";
  std::vector<std::string> command;
  unsigned workers = 1;
  std::uint64_t tokens = 4096;
  double limit_s = 300;
  std::string language;

  Language speaks() const { return format == "json" ? Language::kEnglish : chosen_language(language); }
};

std::filesystem::path folder_of(const Arguments& arguments) {
  return arguments.path.empty() ? cache::default_folder() : std::filesystem::path(arguments.path);
}

cache::Options options_of(const Arguments& arguments) {
  cache::Options options;
  options.path = folder_of(arguments);
  options.create = false;
  return options;
}

void answer(const Arguments& arguments, const json& document, const std::string& text) {
  print_to(stdout, "{}\n", arguments.format == "json" ? json_text(document) : text);
}

std::string entries_text(std::uint64_t entries, std::uint64_t bytes, Language language) {
  return entries == 1 ? translate(language, "1 entry, {}", format_bytes(bytes))
                      : translate(language, "{} entries, {}", entries, format_bytes(bytes));
}

int show_stats(const Arguments& arguments) {
  cache::Store store(options_of(arguments));
  const cache::Statistics all = store.statistics();
  const json document = {{"schema", "unidle.cache/1"},
                         {"entries", all.entries},
                         {"bytes", all.bytes},
                         {"max_bytes", all.max_bytes ? json(*all.max_bytes) : json()}};
  const Language language = arguments.speaks();
  const std::string entries = entries_text(all.entries, all.bytes, language);
  answer(arguments, document,
         store.path().string() + ": " +
             (all.max_bytes ? translate(language, "{} of at most {}", entries, format_bytes(*all.max_bytes))
                            : translate(language, "{}, no bound", entries)));
  return 0;
}

int verify(const Arguments& arguments) {
  cache::Store store(options_of(arguments));
  const std::uint64_t total = store.statistics().entries;
  const Language language = arguments.speaks();
  const SignalStop stop;
  const std::int64_t start_ns = system_clock().now_ns();
  cache::Verified all;
  {
    Progress progress(std::string(translate(language, "verify")), total);
    all = store.verify(stop.token(), [&](std::uint64_t entries, std::uint64_t bytes) {
      const double past_s = seconds(system_clock().now_ns() - start_ns);
      progress.update(
          std::min(entries, total),
          fmt::format("{}/s", format_bytes(static_cast<std::uint64_t>(static_cast<double>(bytes) / past_s))));
    });
  }
  if (stop.signal() != 0) {
    throw Error(ErrorCode::kCancelled, store.path().string(),
                fmt::format("was checked in part only: {} of {} entries", all.checked, total));
  }
  const json document = {{"checked", all.checked}, {"damaged", all.damaged}, {"set_aside", all.set_aside}};
  const std::string entries = entries_text(all.checked, all.bytes, language);
  answer(arguments, document,
         store.path().string() + ": " +
             (all.damaged == 0
                  ? translate(language, "{} checked, all intact", entries)
                  : translate(language, "{} checked, {} damaged, {} set aside", entries, all.damaged, all.set_aside)));
  return all.damaged == 0 ? 0 : 1;
}

int prune(const Arguments& arguments) {
  cache::Store store(options_of(arguments));
  const cache::Pruned gone = store.prune(arguments.max_bytes);
  const cache::Statistics left = store.statistics();
  const json document = {
      {"schema", "unidle.cache.prune/1"}, {"evicted", {{"entries", gone.entries}, {"bytes", gone.bytes}}},
      {"removed_damaged", gone.damaged},  {"removed_left_over", gone.left_over},
      {"entries", left.entries},          {"bytes", left.bytes}};
  const Language language = arguments.speaks();
  answer(arguments, document,
         translate(language, "{}: {} evicted, {} files of no use removed; {} left", store.path().string(),
                   entries_text(gone.entries, gone.bytes, language), gone.damaged + gone.left_over,
                   entries_text(left.entries, left.bytes, language)));
  return 0;
}

int show_path(const Arguments& arguments) {
  const std::filesystem::path folder = folder_of(arguments);
  if (arguments.key.empty() && arguments.name.empty()) {
    answer(arguments,
           {{"schema", "unidle.cache.path/1"}, {"path", folder.string()}, {"exists", exists(status_of(folder))}},
           folder.string());
    return 0;
  }
  const auto key = arguments.key.empty() ? cache::key_of_name(arguments.name) : cache::Key::from_hex(arguments.key);
  if (!key) {
    throw Error(ErrorCode::kUsage, "--key " + arguments.key, "is not a key", "64 lower-case hexadecimal digits");
  }
  cache::Options options = options_of(arguments);
  options.read_only = true;
  cache::Store store(options);
  const bool there = store.contains(*key);
  answer(arguments,
         {{"schema", "unidle.cache.path/1"},
          {"path", store.file_of(*key).string()},
          {"key", key->hex()},
          {"exists", there}},
         store.file_of(*key).string());
  return there ? 0 : 1;
}

cache::PredictorFactory factory_of(const Arguments& arguments, const json& parameters) {
  if (arguments.command.empty() == arguments.predictor.empty()) {
    throw Error(
        ErrorCode::kUsage, "cache warm", "needs one predictor",
        "--predictor with peptide, peptide-ensemble, a TorchScript file or an AOTInductor package, or a program "
        "after --");
  }
  cache::CommandOptions options;
  options.command = arguments.predictor.empty()
                        ? arguments.command
                        : std::vector<std::string>{engine_program(), "predictor", arguments.predictor, "--sharers",
                                                   std::to_string(arguments.workers)};
  options.parameters = parameters;
  options.batch_limit_ns = nanoseconds(arguments.limit_s);
  return [options](std::stop_token stop) { return std::make_unique<cache::CommandPredictor>(options, stop); };
}

std::string_view kind_name(cache::PoolOutcome::Kind kind) {
  using Kind = cache::PoolOutcome::Kind;
  return kind == Kind::kRefused ? "refused" : kind == Kind::kPoison ? "poison" : "no-predictor";
}

/// An input's text, shortened for display.
std::string shown(const std::string& input) {
  constexpr std::size_t kMost = 60;
  return input.size() <= kMost ? input : input.substr(0, kMost) + "...";
}

int warm(const Arguments& arguments) {
  const json parameters = parse_json(arguments.parameters);
  if (!parameters.is_object()) {
    throw Error(ErrorCode::kUsage, "--parameters", "is not a JSON object");
  }
  cache::FeatureOptions features_options;
  features_options.pool.make = factory_of(arguments, parameters);
  features_options.pool.workers = arguments.workers;
  features_options.pool.tokens_per_batch = arguments.tokens;
  features_options.parameters = parameters.dump();
  const std::vector<std::string> inputs = cache::read_inputs(arguments.inputs);
  cache::Options options = options_of(arguments);
  options.create = true;
  options.max_bytes = arguments.max_bytes;
  cache::Store store(options);
  const SignalStop stop;
  const std::int64_t start_ns = system_clock().now_ns();
  const auto past_s = [&] { return std::max(seconds(system_clock().now_ns() - start_ns), 1e-9); };
  cache::Features features(store, features_options);
  const Language language = arguments.speaks();
  json failures = json::array();
  constexpr std::size_t kMostFailures = 1000;
  cache::Warmed warmed;
  {
    Progress progress(std::string(translate(language, "warm")), inputs.size());
    warmed = features.warm(
        inputs, stop.token(),
        [&](std::uint64_t done) {
          progress.update(done, fmt::format("{}/s", format_number(static_cast<double>(done) / past_s())));
        },
        [&](const std::string& input, const cache::Feature& why) {
          if (failures.size() < kMostFailures) {
            failures.push_back({{"input", shown(input)}, {"kind", kind_name(why.kind)}, {"reason", why.reason}});
          }
        });
  }
  const double took_s = past_s();
  const double rate = static_cast<double>(warmed.computed) / took_s;
  const bool whole = warmed.inputs == inputs.size();
  const json document = {
      {"schema", "unidle.cache.warm/1"}, {"inputs", inputs.size()},     {"done", warmed.inputs},
      {"there", warmed.there},           {"computed", warmed.computed}, {"not_stored", warmed.unstored},
      {"failed", warmed.failed},         {"failures", failures},        {"seconds", took_s},
      {"computed_per_s", rate},          {"interrupted", !whole}};
  std::string text = translate(language, "{}: {} of {} inputs: {} were there, {} computed in {} ({}/s), {} failed",
                               store.path().string(), warmed.inputs, inputs.size(), warmed.there, warmed.computed,
                               format_seconds(took_s), format_number(rate), warmed.failed);
  text += warmed.unstored > 0 ? translate(language, "; {} of the computed are not stored", warmed.unstored) : "";
  text += whole ? "" : std::string(translate(language, "; stopped: the same command goes on"));
  for (const json& failure : failures) {
    text += fmt::format("\n  {}: {} ({})", failure["input"].get<std::string>(), failure["reason"].get<std::string>(),
                        failure["kind"].get<std::string>());
  }
  answer(arguments, document, text);
  return whole && warmed.failed == 0 && warmed.unstored == 0 ? 0 : 1;
}

CLI::App* add_warm(CLI::App& app, Arguments& arguments) {
  CLI::App* action = app.add_subcommand("warm", "Compute missing entries ahead; after a stop, the next call continues");
  action->add_option("path", arguments.path, "The cache's folder; made if it does not exist")->required();
  action->add_option("command", arguments.command, "After --: a program that speaks docs/predictor-protocol.md");
  action->add_option("--inputs", arguments.inputs, "A file with one input per line, or a FASTA file")->required();
  action->add_option(
      "--predictor", arguments.predictor,
      "Instead of a program, run by unidle-train: peptide, peptide-ensemble, a TorchScript file or a .pt2 package");
  action->add_option("--parameters", arguments.parameters,
                     "A JSON object for the program; results with other parameters are other entries");
  action->add_option("--workers", arguments.workers, "Number of predictors that run at once")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  action
      ->add_option("--tokens", arguments.tokens,
                   "Largest batch: the length of its longest input times the number of inputs")
      ->check(positive_number())
      ->capture_default_str();
  action->add_option("--limit", arguments.limit_s, "Seconds that a batch may take at most")
      ->check(positive_number())
      ->capture_default_str();
  action->add_option("--max-bytes", arguments.max_bytes, "Keep the cache below this size from now on, e.g. 20GB")
      ->transform(CLI::AsSizeValue(true));
  action->add_option("--format", arguments.format, "text or json")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  add_language_option(*action, arguments.language);
  return action;
}

CLI::App* add_action(CLI::App& app, const std::string& name, const std::string& summary, Arguments& arguments) {
  CLI::App* action = app.add_subcommand(name, summary);
  action->add_option("path", arguments.path, "The cache's folder; $UNIDLE_CACHE or .unidle/cache when left out");
  action->add_option("--format", arguments.format, "text or json")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  add_language_option(*action, arguments.language);
  return action;
}

std::function<int()> setup(CLI::App& app) {
  auto arguments = std::make_shared<Arguments>();
  app.require_subcommand(1);
  CLI::App* stats = add_action(app, "stats", "Count the entries and their bytes", *arguments);
  CLI::App* verifies =
      add_action(app, "verify", "Read every entry; set aside what is damaged (exit code 1)", *arguments);
  CLI::App* prunes = add_action(app, "prune", "Evict entries down to a size, and remove useless files", *arguments);
  prunes
      ->add_option("--max-bytes", arguments->max_bytes, "Keep at most this, e.g. 20GB; the cache's own bound otherwise")
      ->transform(CLI::AsSizeValue(true));
  CLI::App* warms = add_warm(app, *arguments);
  CLI::App* path = add_action(app, "path", "Print where the cache is, or the file of an entry", *arguments);
  CLI::Option* key = path->add_option("--key", arguments->key, "The key of an entry; exit code 1 when it is not there");
  path->add_option("--name", arguments->name, "The name of an entry, where its key was made of one")->excludes(key);
  return [arguments, stats, verifies, prunes, warms] {
    return stats->parsed()      ? show_stats(*arguments)
           : verifies->parsed() ? verify(*arguments)
           : prunes->parsed()   ? prune(*arguments)
           : warms->parsed()    ? warm(*arguments)
                                : show_path(*arguments);
  };
}

}  // namespace

const Subcommand& cache() {
  static const Subcommand kCommand{
      "cache",
      "The feature cache: list, verify, shrink and fill it",
      "Examples:\n"
      "  unidle cache stats\n"
      "  unidle cache verify features --format json\n"
      "  unidle cache prune features --max-bytes 20GB\n"
      "  unidle cache path features --key KEY\n"
      "  unidle cache warm features --inputs peptides.fasta --predictor peptide\n"
      "  unidle cache warm features --inputs peptides.fasta --predictor model.pt\n"
      "  unidle cache warm features --inputs peptides.fasta --workers 2 -- python predictor.py\n",
      setup,
  };
  return kCommand;
}

}  // namespace unidle::cli::commands
