#include "unidle/slurm/job_script.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstring>

#include "unidle/base/characters.h"
#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/base/numbers.h"
#include "unidle/base/shell.h"
#include "unidle/slurm/job.h"

namespace unidle::slurm {

namespace {

constexpr std::string_view kComment = "unidle:";

/// Rejects line breaks: one in a value would end the #SBATCH line, and the rest would run as a command.
void check_line(std::string_view option, std::string_view value) {
  if (value.find_first_of("\n\r") != std::string_view::npos) {
    throw Error(ErrorCode::kUsage, std::string(option), "holds a line break");
  }
}

bool is_no_limit(std::string_view time) {
  std::string word(time);
  std::transform(word.begin(), word.end(), word.begin(), [](char c) { return lower(c); });
  return word == "unlimited" || word == "infinite";
}

/// The signal in "INT@120", "B:USR1@60", "10@30"; nothing for invalid text. Source: sbatch(1), --signal.
std::optional<int> signal_number(std::string_view text) {
  for (const std::string_view whom : {"B:", "R:", "BR:", "RB:"}) {
    text.remove_prefix(text.starts_with(whom) ? whom.size() : 0);
  }
  const std::size_t at = std::min(text.find('@'), text.size());
  constexpr int kLongest_s = 65535;
  const auto ahead = parse_number<int>(text.substr(std::min(at + 1, text.size())));
  if (at < text.size() && (!ahead || *ahead < 0 || *ahead > kLongest_s)) {
    return std::nullopt;
  }
  const std::string_view signal = text.substr(0, at);
  if (const auto number = parse_number<int>(signal)) {
    return *number > 0 && *number < NSIG ? number : std::nullopt;
  }
  for (int number = 1; number < NSIG; ++number) {
    const char* name = ::sigabbrev_np(number);
    if (name != nullptr && (signal == name || signal == "SIG" + std::string(name))) {
      return number;
    }
  }
  return std::nullopt;
}

/// The node's shell expands variables in the path; no other shell syntax is allowed.
void check_scratch(const JobRequest& request) {
  check_line("--scratch", request.scratch);
  if (request.scratch.find_first_of("\"`\\") != std::string::npos || request.scratch.find("$(") != std::string::npos) {
    throw Error(ErrorCode::kUsage, "--scratch " + request.scratch, "is not a plain folder", "/tmp or '$SLURM_TMPDIR'");
  }
  if (!request.staged.empty() && request.scratch.empty()) {
    throw Error(ErrorCode::kUsage, "--stage", "needs --scratch, the folder that it is copied into", "--scratch /tmp");
  }
  for (const std::filesystem::path& path : request.staged) {
    check_line("--stage", path.string());
  }
}

/// Whether the command already uses a launcher: one among its first words, before the program's own options.
bool starts_processes(const std::vector<std::string>& command) {
  for (const std::string& word : command) {
    const std::string name = std::filesystem::path(word).filename().string();
    if (name.ends_with(".py")) {
      return false;
    }
    if (name == "torchrun" || name == "deepspeed" || name == "accelerate" || word == "torch.distributed.run" ||
        word == "torch.distributed.launch") {
      return true;
    }
  }
  return false;
}

void check(const JobRequest& request) {
  check_line("--name", request.name);
  check_line("--partition", request.partition);
  check_line("--account", request.account);
  check_line("--qos", request.qos);
  check_line("--constraint", request.constraint);
  check_line("--gpu-type", request.gpu_type);
  check_line("--array", request.array);
  check_line("--signal", request.signal);
  check_line("--results", request.results.string());
  check_scratch(request);
  if (!request.time.empty() && !is_no_limit(request.time) && !parse_duration(request.time)) {
    throw Error(ErrorCode::kUsage, "--time " + request.time, "is not a time",
                "4:00:00, 2-00:00:00, minutes or UNLIMITED");
  }
  if (!request.signal.empty() && !signal_number(request.signal)) {
    throw Error(ErrorCode::kUsage, "--signal " + request.signal, "is not NAME@SECONDS", "INT@120");
  }
  if (!request.memory.empty() && !parse_memory(request.memory)) {
    throw Error(ErrorCode::kUsage, "--mem " + request.memory, "is not an amount of memory", "32G or 800M");
  }
  if (request.requeue && request.signal.empty()) {
    throw Error(ErrorCode::kUsage, "--requeue", "needs --signal NAME@SECONDS, before its time is over",
                "INT@120 for `unidle train`, which then writes a checkpoint");
  }
  if (request.processes && request.gpus == 0) {
    throw Error(ErrorCode::kUsage, "--torchrun", "starts one process a GPU, and none is asked for");
  }
  if (request.processes && starts_processes(request.command)) {
    throw Error(ErrorCode::kUsage, "--torchrun", "starts the processes, and so does the command",
                "leave one of the two out");
  }
}

/// Quotes a value of an #SBATCH line; sbatch reads quotes as a shell does.
std::string quoted(const std::string& value) {
  return value.find_first_of(" '\"\\") == std::string::npos ? value : shell_quoted(value);
}

/// Escapes `%`: sbatch replaces patterns such as %j.
std::string without_symbols(const std::string& path) {
  std::string plain;
  for (const char c : path) {
    plain += c == '%' ? "%%" : std::string(1, c);
  }
  return plain;
}

std::string options_of(const JobRequest& request) {
  std::string text;
  const auto add = [&](std::string_view option, const std::string& value) {
    if (!value.empty()) {
      text += fmt::format("#SBATCH --{}={}\n", option, quoted(value));
    }
  };
  const std::string id = request.array.empty() ? "%j" : "%A_%a";
  add("job-name", request.name);
  add("partition", request.partition);
  add("account", request.account);
  add("qos", request.qos);
  add("constraint", request.constraint);
  add("nodes", std::to_string(request.nodes));
  add("ntasks-per-node", "1");
  if (request.gpus > 0) {
    const std::string type = request.gpu_type.empty() ? "" : request.gpu_type + ":";
    add("gres", fmt::format("gpu:{}{}", type, request.gpus));
  }
  add("cpus-per-task", request.cpus ? std::to_string(*request.cpus) : "");
  add("mem", request.memory);
  add("time", request.time);
  add("array", request.array);
  add("signal", request.signal);
  add("output", fmt::format("{}/gpu_run_{}_detailed.log", without_symbols(request.results.string()), id));
  add("open-mode", "append");  // a requeued job continues its log
  add("comment", comment_of(request.results));
  text += request.requeue ? "#SBATCH --requeue\n" : "#SBATCH --no-requeue\n";
  return text;
}

/// The words of the command, with {scratch} replaced by the node's scratch folder, if there is one.
std::string joined(const std::vector<std::string>& command, const JobRequest& request) {
  constexpr std::string_view kScratch = "{scratch}";
  std::string text;
  for (const std::string& word : command) {
    text += text.empty() ? "" : " ";
    std::size_t begin = 0;
    std::size_t at = request.scratch.empty() ? std::string::npos : word.find(kScratch);
    for (; at != std::string::npos; at = word.find(kScratch, begin)) {
      text += (at > begin ? shell_quoted(word.substr(begin, at - begin)) : "") + "\"$UNIDLE_SCRATCH\"";
      begin = at + kScratch.size();
    }
    text += begin == 0 || begin < word.size() ? shell_quoted(word.substr(begin)) : "";
  }
  return text;
}

/// The commands that a node runs: the observed command, with the set-up and clean-up of its scratch folder. $0 is the
/// record, $1 the job's id.
std::string step_of(const JobRequest& request, const std::string& command) {
  const std::string record = request.nodes == 1 ? "$0" : "$0/$SLURMD_NODENAME";
  const std::string observed =
      fmt::format("{} run -o \"{}\" -- {}", shell_quoted(request.unidle.string()), record, command);
  if (request.scratch.empty()) {
    return "exec " + observed;
  }
  // Slurm signals all processes: this shell waits for the command to end, then cleans up.
  std::string text = "trap : HUP INT TERM USR1 USR2\n";
  text += fmt::format("UNIDLE_SCRATCH=$(mktemp -d \"{}/unidle_$1.XXXXXX\") || exit 1\n", request.scratch);
  text += "export UNIDLE_SCRATCH TMPDIR=$UNIDLE_SCRATCH\n";
  if (!request.staged.empty()) {
    std::vector<std::string> copy = {"cp", "-RL", "--"};
    for (const std::filesystem::path& path : request.staged) {
      copy.push_back(path.string());
    }
    text += shell_joined(copy) + " \"$UNIDLE_SCRATCH/\" || { rm -rf -- \"$UNIDLE_SCRATCH\"; exit 1; }\n";
  }
  return text + observed + "\ncode=$?\nrm -rf -- \"$UNIDLE_SCRATCH\"\nexit $code";
}

/// The command, prefixed with torchrun when each GPU has a process; torchrun takes a Python program without its
/// interpreter.
std::string started(const JobRequest& request) {
  std::vector<std::string> command = request.command;
  if (!request.processes) {
    return joined(command, request);
  }
  const std::string first = std::filesystem::path(command.front()).filename().string();
  const bool python = first.starts_with("python") && command.size() > 1;
  const std::string program = python ? shell_quoted(command.front()) + " -m torch.distributed.run" : "torchrun";
  if (python) {
    command.erase(command.begin());
  }
  const std::string no_python = python ? "" : " --no-python";
  const std::string nodes = request.nodes == 1
                                ? " --standalone"
                                : " --nnodes=\"$SLURM_JOB_NUM_NODES\" --rdzv-backend=c10d --rdzv-id=\"$SLURM_JOB_ID\" "
                                  "--rdzv-endpoint=\"$head:$((20000 + SLURM_JOB_ID % 20000))\"";
  return fmt::format("{}{} --nproc-per-node={}{} {}", program, nodes, request.gpus, no_python,
                     joined(command, request));
}

}  // namespace

void train(JobRequest& request, const std::filesystem::path& config) {
  request.command = {request.unidle.string(), "train", std::filesystem::absolute(config).string()};
  if (read_file(config).find("checkpoint") == std::string::npos) {
    // Enables checkpoints, which are written when the signal arrives; an interval set in the configuration has
    // priority.
    request.command.emplace_back("checkpoint.interval=1000000000");
  }
  request.trains = true;
  if (request.name.empty()) {
    request.name = config.stem().string();
  }
  if (request.signal.empty()) {
    request.signal = "INT@120";
  }
}

std::string comment_of(const std::filesystem::path& results) { return std::string(kComment) + results.string(); }

std::filesystem::path results_in(const std::string& comment) {
  return comment.starts_with(kComment) ? std::filesystem::path(comment.substr(kComment.size()))
                                       : std::filesystem::path();
}

std::string job_script(const JobRequest& request) {
  check(request);
  std::string text = "#!/bin/bash\n" + options_of(request);
  text += "\nset -u\n";
  text += "id=${SLURM_ARRAY_JOB_ID:+${SLURM_ARRAY_JOB_ID}_${SLURM_ARRAY_TASK_ID}}\n";
  text += "id=${id:-$SLURM_JOB_ID}\n";
  text += fmt::format("results={}\n", shell_quoted(request.results.string()));
  if (request.trains) {
    text += "checkpoints=$results/checkpoints_$id\n";
  }
  text += "id=$id${SLURM_RESTART_COUNT:+_again$SLURM_RESTART_COUNT}\n";
  text += "record=$results/unidle_$id\n";
  for (const std::string& line : request.before) {
    text += line + "\n";
  }
  if (request.gpus > 0) {
    text +=
        "\nif command -v nvidia-smi >/dev/null; then\n"
        "  nvidia-smi --query-gpu=timestamp,utilization.gpu,utilization.memory,memory.used,memory.total,power.draw,"
        "temperature.gpu \\\n    --format=csv -l 10 >\"$results/gpu_utilization_$id.log\" &\n"
        "  watch=$!\n  trap 'kill $watch 2>/dev/null' EXIT\nfi\n";
  }
  if (request.processes && request.nodes > 1) {
    text += "head=$(scontrol show hostnames \"$SLURM_JOB_NODELIST\" | head -n 1)\nexport head\n";
  }
  std::string command = started(request);
  if (request.trains) {
    text += "resume=\nif [ -e \"$checkpoints/checkpoint.pt\" ]; then resume=$checkpoints; fi\n";
    command += " \"checkpoint.folder=$checkpoints\" ${resume:+--resume \"$resume\"}";
  }
  if (request.nodes > 1) {
    text += "mkdir -p \"$record\"\n";
  }
  if (request.nodes == 1 && request.scratch.empty()) {
    text += fmt::format("\nsrun {} run -o \"$record\" -- {}\n", shell_quoted(request.unidle.string()), command);
  } else {
    text += fmt::format("\nsrun bash -c {} \"$record\" \"$id\"\n", shell_quoted(step_of(request, command)));
  }
  text += "code=$?\n";
  if (request.requeue) {
    text += fmt::format(
        "# That signal has ended it, before its time was over: no crash, which would come again.\n"
        "if [ $code = {} ]; then scontrol requeue \"$SLURM_JOB_ID\" && sleep 60; fi\n",
        128 + signal_number(request.signal).value_or(0));
  }
  text += "exit $code\n";
  return text;
}

}  // namespace unidle::slurm
