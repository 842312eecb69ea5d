// `unidle cache`: what is in a feature cache, whether it is intact, and less of it.
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
#include "unidle/cache/store.h"
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

std::string entries_text(std::uint64_t entries, std::uint64_t bytes) {
  return fmt::format("{} {}, {}", entries, entries == 1 ? "entry" : "entries", format_bytes(bytes));
}

int show_stats(const Arguments& arguments) {
  cache::Store store(options_of(arguments));
  const cache::Statistics all = store.statistics();
  const json document = {{"schema", "unidle.cache/1"},
                         {"entries", all.entries},
                         {"bytes", all.bytes},
                         {"max_bytes", all.max_bytes ? json(*all.max_bytes) : json()}};
  answer(arguments, document,
         fmt::format("{}: {}{}", store.path().string(), entries_text(all.entries, all.bytes),
                     all.max_bytes ? fmt::format(" of at most {}", format_bytes(*all.max_bytes)) : ", no bound"));
  return 0;
}

int verify(const Arguments& arguments) {
  cache::Store store(options_of(arguments));
  const std::uint64_t total = store.statistics().entries;
  const SignalStop stop;
  const std::int64_t start_ns = system_clock().now_ns();
  cache::Verified all;
  {
    Progress progress("verify", total);
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
  answer(arguments, document,
         fmt::format(
             "{}: {} checked, {}", store.path().string(), entries_text(all.checked, all.bytes),
             all.damaged == 0 ? "all intact" : fmt::format("{} damaged, {} set aside", all.damaged, all.set_aside)));
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
  answer(arguments, document,
         fmt::format("{}: {} evicted, {} files of no use removed; {} left", store.path().string(),
                     entries_text(gone.entries, gone.bytes), gone.damaged + gone.left_over,
                     entries_text(left.entries, left.bytes)));
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
    throw Error(ErrorCode::kUsage, "--key " + arguments.key, "is no key", "64 lower-case hexadecimal digits");
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

CLI::App* add_action(CLI::App& app, const std::string& name, const std::string& summary, Arguments& arguments) {
  CLI::App* action = app.add_subcommand(name, summary);
  action->add_option("path", arguments.path, "The cache's folder; $UNIDLE_CACHE or .unidle/cache when left out");
  action->add_option("--format", arguments.format, "text or json")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  return action;
}

std::function<int()> setup(CLI::App& app) {
  auto arguments = std::make_shared<Arguments>();
  app.require_subcommand(1);
  CLI::App* stats = add_action(app, "stats", "How many entries there are, and their bytes", *arguments);
  CLI::App* verifies =
      add_action(app, "verify", "Read every entry; set aside what is damaged (exit code 1)", *arguments);
  CLI::App* prunes = add_action(app, "prune", "Evict down to a size, and remove what is of no use", *arguments);
  prunes
      ->add_option("--max-bytes", arguments->max_bytes, "Keep at most this, e.g. 20GB; the cache's own bound otherwise")
      ->transform(CLI::AsSizeValue(true));
  CLI::App* path = add_action(app, "path", "Where the cache is, or the file of an entry", *arguments);
  CLI::Option* key = path->add_option("--key", arguments->key, "The key of an entry; exit code 1 when it is not there");
  path->add_option("--name", arguments->name, "The name of an entry, as the Python package has it")->excludes(key);
  return [arguments, stats, verifies, prunes] {
    return stats->parsed()      ? show_stats(*arguments)
           : verifies->parsed() ? verify(*arguments)
           : prunes->parsed()   ? prune(*arguments)
                                : show_path(*arguments);
  };
}

}  // namespace

const Subcommand& cache() {
  static const Subcommand kCommand{
      "cache",
      "The feature cache: what is in it, whether it is intact, and less of it",
      "Examples:\n"
      "  unidle cache stats\n"
      "  unidle cache verify features --format json\n"
      "  unidle cache prune features --max-bytes 20GB\n"
      "  unidle cache path features --key KEY\n",
      setup,
  };
  return kCommand;
}

}  // namespace unidle::cli::commands
