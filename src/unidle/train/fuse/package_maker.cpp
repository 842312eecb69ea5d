#include "unidle/train/fuse/package_maker.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <torch/version.h>

#include <chrono>
#include <cstdlib>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "unidle/base/checksum.h"
#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/base/log.h"
#include "unidle/base/process.h"
#include "unidle/base/split.h"
#include "unidle/train/device_facts.h"

namespace unidle::train {

namespace fs = std::filesystem;

namespace {

constexpr std::chrono::minutes kLongestCompilation(20);  // the five workloads take one to three minutes
constexpr std::chrono::milliseconds kBetweenPolls(50);

fs::path compiler_script() { return program_folder().parent_path() / "share/unidle/python/engine/fuse.py"; }

/// The program of the Python whose torch we use: it lies in PREFIX/lib/python3.X/site-packages/torch/lib.
fs::path python_of_libtorch() {
  fs::path folder = libtorch_folder();
  for (int up = 0; up < 5; ++up) {
    folder = folder.parent_path();
  }
  return folder / "bin/python3";
}

std::vector<std::string> candidates() {
  if (const char* named = std::getenv("UNIDLE_PYTHON"); named != nullptr && *named != '\0') {
    return {named};
  }
  std::vector<std::string> found;
  if (const fs::path beside = python_of_libtorch(); fs::exists(status_of(beside))) {
    found.push_back(beside.string());
  }
  found.push_back("python3");
  return found;
}

/// Our helper programs are not part of the observed run.
Command unobserved(std::vector<std::string> argv) {
  Command command;
  command.argv = std::move(argv);
  command.environment = {{"UNIDLE_PROBE_DIR", ""}};
  command.in = Command::Stream::kNull;
  return command;
}

/// Empty when it has no torch or is not Python. Does not import torch, which takes seconds.
std::string torch_version_of(const std::string& python) {
  constexpr const char* kAsk =
      "import importlib.util as u\n"
      "spec = u.find_spec('torch')\n"
      "found = {}\n"
      "if spec: exec(open(spec.submodule_search_locations[0] + '/version.py').read(), found)\n"
      "print(found.get('__version__', ''))\n";
  try {
    Command command = unobserved({python, "-c", kAsk});
    const Finished finished = run_to_end(command, std::chrono::seconds(60));
    return finished.status.ok() ? std::string(first_line(finished.out)) : "";
  } catch (const Error&) {
    return "";
  }
}

/// Identifies the processor and device that a package's code is for.
std::string machine_kind(at::Device device) {
  std::string kind;
  if (const auto cpu = try_read_file("/proc/cpuinfo")) {
    const std::size_t flags = cpu->find("flags");
    kind = flags == std::string::npos ? "" : std::string(first_line(std::string_view(*cpu).substr(flags)));
  }
  if (const auto facts = device_facts(device)) {
    kind += fmt::format("{} {}.{}", facts->name, facts->major, facts->minor);
  }
  return kind;
}

/// A 64-bit hash of all texts.
std::string digest(const std::vector<std::string>& texts) {
  std::string all;
  for (const std::string& text : texts) {
    all += std::to_string(text.size()) + ":" + text;
  }
  const auto bytes = std::as_bytes(std::span(all));
  return fmt::format("{:08x}{:08x}", crc32(0, bytes), crc32c(bytes));
}

/// Waits for the compiler. Throws kCancelled and kChild when it does not finish.
ExitStatus end_of(ChildProcess& child, const std::atomic<bool>* stop) {
  const auto limit = std::chrono::steady_clock::now() + kLongestCompilation;
  while (true) {
    if (const auto status = child.poll()) {
      return *status;
    }
    if (stop != nullptr && stop->load(std::memory_order_relaxed)) {
      throw Error(ErrorCode::kCancelled, "the compiler", "was stopped");
    }
    if (std::chrono::steady_clock::now() > limit) {
      throw Error(ErrorCode::kChild, "the compiler",
                  fmt::format("did not finish within {} minutes", kLongestCompilation.count()));
    }
    std::this_thread::sleep_for(kBetweenPolls);
  }
}

}  // namespace

fs::path libtorch_folder() {
  Dl_info info{};
  const bool found = dladdr(reinterpret_cast<void*>(&at::globalContext), &info) != 0;
  return found ? fs::absolute(info.dli_fname).parent_path() : fs::path();
}

std::string matching_python() {
  std::string others;
  for (const std::string& python : candidates()) {
    const std::string version = torch_version_of(python);
    if (version.substr(0, version.find('+')) == TORCH_VERSION) {
      return python;
    }
    others += fmt::format("{}{} has {}", others.empty() ? "" : ", ", python,
                          version.empty() ? std::string("no torch") : "torch " + version);
  }
  throw Error(ErrorCode::kMissing, "compiling", fmt::format("needs a Python with torch {}; {}", TORCH_VERSION, others),
              "UNIDLE_PYTHON names one");
}

fs::path PackageMaker::place_of(const TracedLoss& loss) const {
  const std::string key = digest({loss.script, loss.description, TORCH_VERSION, machine_kind(device_),
                                  try_read_file(compiler_script()).value_or("")});
  return home_folder() / "fused" / (key + ".pt2");
}

fs::path PackageMaker::package_of(const TracedLoss& loss) {
  const fs::path place = place_of(loss);
  if (!fs::exists(status_of(place))) {
    make(loss, place);
  }
  return place;
}

fs::path PackageMaker::rebuild(const TracedLoss& loss) {
  const fs::path place = place_of(loss);
  make(loss, place);
  return place;
}

void PackageMaker::make(const TracedLoss& loss, const fs::path& place) const {
  const fs::path script = compiler_script();
  if (!fs::exists(status_of(script))) {
    throw Error(ErrorCode::kMissing, script.string(), "is not there", "reinstall unidle");
  }
  const std::string python = matching_python();
  say("compile.mode: fused: compiling the loss and its gradients, which takes a minute or more; it is kept for later "
      "runs");
  const TemporaryFolder folder("unidle-fused");
  write_file_atomic(folder.path() / "loss.pt", loss.script);
  write_file_atomic(folder.path() / "loss.json", loss.description);
  const auto start = std::chrono::steady_clock::now();
  Command command = unobserved({python, script.string(), folder.path().string()});
  command.out = command.err = Command::Stream::kNull;
  command.own_group = true;  // it starts compilers as children
  command.die_with_parent = true;
  ChildProcess child(command);
  const ExitStatus status = end_of(child, stop_);
  const fs::path made = folder.path() / "loss.pt2";
  if (!status.ok() || !fs::exists(status_of(made))) {
    const auto reason = try_read_file(folder.path() / "failure.txt");
    throw Error(ErrorCode::kChild, "the compiler",
                reason ? std::string(first_line(*reason)) : fmt::format("ended with {}", status.shell_code()));
  }
  make_folders(place.parent_path());
  write_file_atomic(place, read_file(made));
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  say(fmt::format("compile.mode: fused: compiled in {:.0f} s", took.count()));
}

}  // namespace unidle::train
