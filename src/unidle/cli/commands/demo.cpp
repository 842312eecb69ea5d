// unidle demo: observe, diagnose, change, prove, on a small program of our own and with the user's Python.
#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/base/process.h"
#include "unidle/base/shell.h"
#include "unidle/base/terminal.h"
#include "unidle/cli/language_option.h"
#include "unidle/cli/subcommand.h"
#include "unidle/diagnose/diagnose.h"
#include "unidle/knobs/knob.h"
#include "unidle/knobs/settings.h"

namespace unidle::cli::commands {

namespace {

namespace fs = std::filesystem;

constexpr const char* kProgram =
    R"py("""Trains a small network. Its rows come from a slow place: each one takes 2 ms to arrive."""

import time

import torch
from torch.utils.data import DataLoader, Dataset


class Rows(Dataset):
    def __len__(self):
        return 640

    def __getitem__(self, row):
        time.sleep(0.002)  # as a read from a disk of the network
        inputs = torch.linspace(row / 640, 1, 32)
        return inputs, inputs.sum().reshape(1)


torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
optimizer = torch.optim.SGD(model.parameters(), 0.001)
loader = DataLoader(Rows(), batch_size=32)
for epoch in range(4):
    for inputs, targets in loader:
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(inputs), targets)
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.4f}")
)py";

struct Arguments {
  std::string python;
  std::string folder = "unidle-demo";
  std::string language;
};

/// Where the demo is, and the option --lang.
struct Place {
  fs::path folder;
  std::string language;
};

/// The user's Python, which must have torch.
std::string python_with_torch(const std::string& named) {
  constexpr auto kImportsAtMost = std::chrono::minutes(2);
  const std::vector<std::string> candidates =
      named.empty() ? std::vector<std::string>{"python", "python3"} : std::vector<std::string>{named};
  std::string found;
  for (const std::string& python : candidates) {
    Command command;
    command.argv = {python, "-c", "import torch"};
    command.in = command.out = command.err = Command::Stream::kPipe;
    try {
      if (run_to_end(command, kImportsAtMost).status.ok()) {
        // The demo runs elsewhere. Links stay: a virtual environment's Python is one.
        return python.find('/') == std::string::npos ? python : fs::absolute(python).string();
      }
      found = python;
    } catch (const Error&) {
      continue;  // not there
    }
  }
  if (found.empty()) {
    throw Error(ErrorCode::kMissing, candidates.back(), "is not there", "install Python, or name one with --python");
  }
  throw Error(ErrorCode::kMissing, found, "has no torch", "install torch for it, or name another Python with --python");
}

/// A new folder for the program and its records.
fs::path new_folder(const std::string& asked) {
  fs::path folder = asked;
  for (int n = 2; fs::exists(folder); ++n) {
    folder = fmt::format("{}-{}", asked, n);
  }
  make_folders(folder);
  write_file_atomic(folder / "train.py", kProgram);
  return folder;
}

/// The first word is the subcommand; it answers in the language that was asked for.
Command our_own(const Place& place, const std::vector<std::string>& words) {
  Command command;
  command.argv = {(program_folder() / "unidle").string(), words.front()};
  if (!place.language.empty()) {
    command.argv.insert(command.argv.end(), {"--lang", place.language});
  }
  command.argv.insert(command.argv.end(), words.begin() + 1, words.end());
  command.folder = place.folder;
  return command;
}

/// Runs one of our own commands in the folder, and prints it first. Returns its exit code.
int show(const Place& place, const std::vector<std::string>& words) {
  print_to(stdout, "$ unidle {}\n", shell_joined(words));
  flush_output();
  return ChildProcess(our_own(place, words)).wait().shell_code();
}

std::string first_paragraph(const std::string& text) { return text.substr(0, text.find("\n\n")) + "\n"; }

/// The first change that a running program can be given; the findings come strongest first.
const knobs::Change* change_to_try(const diagnose::Diagnosis& diagnosis) {
  for (const diagnose::Finding& finding : diagnosis.findings) {
    for (const knobs::Change& fix : finding.fixes) {
      if (fix.to && !fix.in_code && !fix.by_hand && knobs::applies_at_run_time(fix.knob, fix.to)) {
        return &fix;
      }
    }
  }
  return nullptr;
}

void heading(std::string_view text) { print_to(stdout, "\n{}\n", text); }

/// Returns the exit code of the comparison.
int prove(const Place& place) {
  Command command = our_own(place, {"compare", "before", "after"});
  command.out = Command::Stream::kPipe;
  const Finished ended = run_to_end(command);
  print_to(stdout, "$ unidle compare before after\n{}", first_paragraph(ended.out));
  return ended.status.shell_code();
}

int execute(const Arguments& arguments) {
  const Language language = chosen_language(arguments.language);
  const std::string python = python_with_torch(arguments.python);
  const fs::path folder = new_folder(arguments.folder);
  const Place place{folder, arguments.language};
  print_to(stdout, "{}\n",
           translate(language, "A small training program is in {}. It is slow for a reason.",
                     (folder / "train.py").string()));
  heading(translate(language, "1. Run it under observation"));
  if (const int code = show(place, {"run", "-o", "before", "--", python, "train.py"}); code != 0) {
    return code;
  }
  heading(translate(language, "2. Ask why it is slow"));
  const diagnose::Diagnosis before = diagnose::diagnose_record(folder / "before", {}, language);
  print_to(stdout, "$ unidle diagnose before\n{}",
           first_paragraph(diagnose::to_text(before, terminal_width(stdout), use_colour(stdout), language)));
  const knobs::Change* change = change_to_try(before);
  if (change == nullptr) {
    print_to(stdout, "{}\n", translate(language, "On this machine there is nothing to change in the running program."));
    return 0;
  }
  heading(translate(language, "3. Change that, without an edit"));
  const std::string applied = knobs::pair_key(change->knob, *change->to);
  if (const int code = show(place, {"run", "-o", "after", "--apply", applied, "--", python, "train.py"}); code != 0) {
    return code;
  }
  heading(translate(language, "4. Prove the gain"));
  if (const int code = prove(place); code != 0) {
    return code;
  }
  heading(translate(language,
                    "Now your own: unidle run -- python train.py, then unidle fix: it tries what unidle diagnose "
                    "proposes, alternating with the unchanged program. The records of this demo are in {}.",
                    folder.string()));
  return 0;
}

std::function<int()> setup(CLI::App& app) {
  auto arguments = std::make_shared<Arguments>();
  app.add_option("--python", arguments->python, "The Python that has torch (default: python, or python3)")
      ->type_name("PROGRAM")
      ->take_last();
  app.add_option("-o,--output", arguments->folder, "The folder for the program and its records")
      ->type_name("FOLDER")
      ->capture_default_str();
  add_language_option(app, arguments->language);
  return [arguments] { return execute(*arguments); };
}

}  // namespace

const Subcommand& demo() {
  static const Subcommand kCommand = {"demo", "Show what unidle does on a small program, in half a minute",
                                      "Needs a Python with torch; a GPU is not needed.\n\nExamples:\n"
                                      "  unidle demo\n"
                                      "  unidle demo --python .venv/bin/python",
                                      setup};
  return kCommand;
}

}  // namespace unidle::cli::commands
