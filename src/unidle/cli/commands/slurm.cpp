// unidle slurm: submits observed jobs and reports on them.
#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

#include <memory>

#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/base/json.h"
#include "unidle/base/terminal.h"
#include "unidle/cli/language_option.h"
#include "unidle/cli/number_option.h"
#include "unidle/cli/subcommand.h"
#include "unidle/record/record.h"
#include "unidle/slurm/analysis.h"
#include "unidle/slurm/client.h"
#include "unidle/slurm/job_script.h"
#include "unidle/slurm/tables.h"

namespace unidle::cli::commands {

namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

struct Arguments {
  slurm::JobRequest request;
  std::vector<std::string> command;
  std::string id;
  std::string user;
  std::string results = "results";
  std::string format = "text";
  std::string language;
  int days = 7;
  double price = 0;
  bool dry_run = false;

  Language speaks() const { return format == "json" ? Language::kEnglish : chosen_language(language); }
};

std::string this_user() {
  const passwd* entry = ::getpwuid(::geteuid());
  return entry != nullptr ? entry->pw_name : std::to_string(::geteuid());
}

/// A single `CONFIG` is a built-in workload; anything else is a command.
void complete(Arguments& arguments) {
  slurm::JobRequest& request = arguments.request;
  request.unidle = program_folder() / "unidle";
  request.results = fs::absolute(arguments.results).lexically_normal();
  request.command = arguments.command;
  for (fs::path& path : request.staged) {
    path = fs::absolute(path).lexically_normal();
  }
  const fs::path first = request.command.front();
  if (request.command.size() == 1 && (first.extension() == ".yaml" || first.extension() == ".yml")) {
    slurm::train(request, first);
  }
  if (request.name.empty()) {
    request.name = record::run_name(arguments.command);
  }
}

int submit(Arguments& arguments) {
  complete(arguments);
  const std::string script = slurm::job_script(arguments.request);
  if (arguments.dry_run) {
    print_to(stdout, "{}", script);
    return 0;
  }
  slurm::Client client;
  const std::string id = slurm::submit(client, script, arguments.request.results);
  const fs::path kept = arguments.request.results / fmt::format("job_{}.sh", id);
  write_file_atomic(kept, script);
  if (arguments.format == "json") {
    const ordered_json document = {{"schema", "unidle.slurm.submit/1"},
                                   {"id", id},
                                   {"script", kept.string()},
                                   {"results", arguments.request.results.string()}};
    print_to(stdout, "{}\n", json_text(document));
  } else {
    print_to(stdout, "{}\n",
             translate(arguments.speaks(), "Job {} was submitted; its script is {}. Next: unidle slurm status {}", id,
                       kept.string(), id));
  }
  return 0;
}

slurm::Row row_of(slurm::Job job, const fs::path& results) {
  const slurm::JobFiles files = slurm::files_of(job, results);
  return slurm::row_of(std::move(job), files);
}

std::vector<slurm::Row> rows_of(slurm::Client& client, const Arguments& arguments) {
  std::vector<slurm::Row> rows;
  const std::string user = arguments.user.empty() ? this_user() : arguments.user;
  for (slurm::Job& job : client.of_user(user, arguments.days)) {
    rows.push_back(row_of(std::move(job), arguments.results));
  }
  return rows;
}

ordered_json document_of(const std::string& schema, const std::vector<slurm::Row>& rows) {
  ordered_json jobs = ordered_json::array();
  for (const slurm::Row& row : rows) {
    jobs.push_back(slurm::to_json(row));
  }
  return {{"schema", schema}, {"jobs", jobs}};
}

ordered_json top_document(const std::vector<slurm::Row>& rows, double price) {
  ordered_json document = document_of("unidle.slurm.top/1", rows);
  const slurm::Totals totals = slurm::totals_of(rows);
  ordered_json& total = document["total"];
  total = {
      {"gpu_hours", totals.gpu_hours}, {"wasted_gpu_hours", totals.wasted_gpu_hours}, {"jobs_unknown", totals.unknown}};
  if (price > 0) {
    total["price"] = price;
    total["cost"] = totals.gpu_hours * price;
    total["wasted_cost"] = totals.wasted_gpu_hours * price;
  }
  return document;
}

std::vector<slurm::Job> jobs_of(slurm::Client& client, const std::string& id) {
  std::vector<slurm::Job> jobs = client.find(id);
  if (jobs.empty()) {
    const std::string& why = client.accounting_problem();
    throw Error(ErrorCode::kInput, "job " + id, "unknown to Slurm" + (why.empty() ? "" : "; accounting: " + why),
                "Slurm forgets a job some minutes after its end where accounting is off; its logs: unidle diagnose "
                "--job-id " +
                    id + " --results FOLDER");
  }
  return jobs;
}

/// The jobs as Slurm describes them. Without Slurm, or when it has forgotten the job, only the id, if files carry it.
std::vector<slurm::Job> jobs_to_analyze(const Arguments& arguments) {
  try {
    slurm::Client client;
    return jobs_of(client, arguments.id);
  } catch (const Error& error) {
    slurm::Job job;
    job.id = arguments.id;
    const slurm::JobFiles files = slurm::files_of(job, arguments.results);
    if (error.code() == ErrorCode::kUsage || (files.records.empty() && files.logs.empty())) {
      throw;
    }
    print_to(stderr, "unidle: {}: {}\n", error.subject(), error.message());
    return {std::move(job)};
  }
}

int status(const Arguments& arguments) {
  slurm::Client client;
  std::vector<slurm::Row> rows;
  if (arguments.id.empty()) {
    rows = rows_of(client, arguments);
  } else {
    for (slurm::Job& job : jobs_of(client, arguments.id)) {
      rows.push_back(row_of(std::move(job), arguments.results));
    }
  }
  if (arguments.format == "json") {
    print_to(stdout, "{}\n", json_text(document_of("unidle.slurm.status/1", rows)));
  } else if (rows.size() == 1 && !arguments.id.empty()) {
    print_to(stdout, "{}", slurm::job_text(rows.front(), arguments.speaks()));
  } else if (rows.empty()) {
    print_to(stdout, "{}\n",
             translate(arguments.speaks(),
                       "No job of yours waits or runs. Submit one: unidle slurm submit -- python train.py"));
  } else {
    print_to(stdout, "{}", slurm::status_table(rows, arguments.speaks()));
  }
  return 0;
}

int top(const Arguments& arguments) {
  slurm::Client client;
  const std::vector<slurm::Row> rows = rows_of(client, arguments);
  if (arguments.format == "json") {
    print_to(stdout, "{}\n", json_text(top_document(rows, arguments.price)));
  } else {
    print_to(stdout, "{}", slurm::top_table(rows, arguments.speaks(), arguments.price));
    if (!client.accounting_problem().empty()) {
      print_to(stderr, "unidle: {}\n",
               translate(arguments.speaks(), "only jobs that the controller remembers; accounting: {}",
                         client.accounting_problem()));
    }
  }
  return 0;
}

void print_analysis(const slurm::Analysis& analysis, Language language) {
  print_to(stdout, "{}", slurm::job_text(analysis.row, language));
  for (const slurm::LineChange& line : analysis.proposals) {
    print_to(stdout, "=> #SBATCH {}  ({})\n", line.line, line.why);
  }
  if (analysis.diagnosis) {
    print_to(stdout, "\n{}",
             diagnose::to_text(*analysis.diagnosis, terminal_width(stdout), use_colour(stdout), language));
  } else {
    print_to(stdout, "{}\n",
             translate(language,
                       "Neither a record nor logs of this job were found: unidle slurm submit records, and --results "
                       "names the folder of its logs."));
  }
}

int analyze(const Arguments& arguments) {
  const bool json = arguments.format == "json";
  const Language language = arguments.speaks();
  ordered_json all = ordered_json::array();
  bool failed = false;
  for (slurm::Job& job : jobs_to_analyze(arguments)) {
    const slurm::Analysis analysis = slurm::analyze(std::move(job), arguments.results, language);
    failed = failed || analysis.failed();
    json ? all.push_back(slurm::to_json(analysis)) : print_analysis(analysis, language);
  }
  if (json) {
    print_to(stdout, "{}\n", json_text(ordered_json{{"schema", "unidle.slurm.analyze/1"}, {"jobs", all}}));
  }
  return failed ? 1 : 0;
}

CLI::App* add_action(CLI::App& app, const std::string& name, const std::string& summary, Arguments& arguments) {
  CLI::App* action = app.add_subcommand(name, summary);
  action->add_option("--format", arguments.format, "text or json")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  add_language_option(*action, arguments.language);
  action->add_option("--results", arguments.results, "The folder of logs and records")->capture_default_str();
  return action;
}

CLI::App* add_submit(CLI::App& app, Arguments& arguments) {
  CLI::App* action = add_action(app, "submit", "Submit a command, or a workload's configuration, observed", arguments);
  slurm::JobRequest& request = arguments.request;
  action->add_option("--name", request.name, "The job's name; the script's by default");
  action->add_option("-p,--partition", request.partition, "Partition; the cluster's default when left out");
  action->add_option("-A,--account", request.account, "Account that pays");
  action->add_option("-q,--qos", request.qos, "Quality of service");
  action->add_option("-C,--constraint", request.constraint, "Features of the nodes");
  action->add_option("-N,--nodes", request.nodes, "Nodes")->check(CLI::Range(1, 100000))->capture_default_str();
  action->add_option("--gpus", request.gpus, "GPUs of each node")->check(CLI::Range(0, 64))->capture_default_str();
  action->add_option("--gpu-type", request.gpu_type, "Their kind, as the cluster names it: a100");
  action->add_option("-c,--cpus-per-task", request.cpus, "CPUs of each node")->check(CLI::Range(1, 4096));
  action->add_option("--mem", request.memory, "Memory of each node: 32G");
  action->add_option("-t,--time", request.time, "Time limit: 4:00:00");
  action->add_option("-a,--array", request.array, "Tasks of an array: 0-3%2");
  action->add_option("--signal", request.signal,
                     "NAME@SECONDS: sent to the command so long before its limit; INT@120 for a configuration, which "
                     "then writes a checkpoint");
  action->add_flag("--requeue", request.requeue, "Put the job in the queue again after the signal has ended it");
  action->add_flag("--torchrun", request.processes, "Start one process a GPU on each node, by torchrun");
  action->add_option(
      "--scratch", request.scratch,
      "A folder on each node's own disk, '$SLURM_TMPDIR' or /tmp: the command gets one of its own in it, "
      "{scratch} in its words, which is removed at its end");
  action->add_option("--stage", request.staged, "A file or folder to copy into that folder first")
      ->allow_extra_args(false);
  action->add_option("--before", request.before, "A line of shell to run first: 'module load cuda'");
  action->add_flag("-n,--dry-run", arguments.dry_run, "Print the script and exit");
  action->add_option("command", arguments.command, "CONFIG.yaml, or -- and a command")->required();
  return action;
}

std::function<int()> setup(CLI::App& app) {
  auto arguments = std::make_shared<Arguments>();
  app.require_subcommand(1);
  CLI::App* submits = add_submit(app, *arguments);
  CLI::App* shows = add_action(app, "status", "Show your jobs, or one: state, rate, time left", *arguments);
  shows->add_option("id", arguments->id, "A job's id");
  CLI::App* analyzes =
      add_action(app, "analyze", "Say what a job used, why it ended, and why its GPU idled", *arguments);
  analyzes->add_option("id", arguments->id, "The job's id")->required();
  CLI::App* tops = add_action(app, "top", "List your jobs by wasted GPU hours", *arguments);
  tops->add_option("--price", arguments->price,
                   "Price of a GPU hour: the text also says what was spent and what was wasted")
      ->check(positive_number());
  for (CLI::App* action : {shows, tops}) {
    action->add_option("-u,--user", arguments->user, "Whose jobs; yours by default");
    action->add_option("--days", arguments->days, "How far back, where Slurm keeps accounts")
        ->check(CLI::Range(1, 3650))
        ->capture_default_str();
  }
  return [arguments, submits, shows, analyzes] {
    return submits->parsed()    ? submit(*arguments)
           : shows->parsed()    ? status(*arguments)
           : analyzes->parsed() ? analyze(*arguments)
                                : top(*arguments);
  };
}

}  // namespace

const Subcommand& slurm() {
  static const Subcommand kCommand{
      "slurm",
      "Submit Slurm jobs under observation, watch them, say why they failed or idled",
      "Examples:\n"
      "  unidle slurm submit --gpus 1 --time 4:00:00 --dry-run -- python train.py\n"
      "  unidle slurm submit --nodes 2 --gpus 4 --torchrun -- python train.py\n"
      "  unidle slurm submit --requeue train.yaml\n"
      "  unidle slurm status\n"
      "  unidle slurm analyze 4711\n"
      "  unidle slurm top --days 30",
      setup,
  };
  return kCommand;
}

}  // namespace unidle::cli::commands
