#include "workloads/predictor_command.h"

#include <ATen/Parallel.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <memory>
#include <string>

#include "unidle/base/error.h"
#include "unidle/base/handle.h"
#include "unidle/cache/serve.h"
#include "unidle/train/device.h"
#include "workloads/package_predictor.h"
#include "workloads/script_predictor.h"

namespace unidle::workloads {

namespace {

struct PredictorOptions {
  std::string module;
  std::string device = "auto";
  int sharers = 1;
};

int serve_module(const PredictorOptions& options) {
  // A module may print; what it prints must not get among the answers.
  const UniqueFd answers(::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3));
  if (!answers || ::dup2(STDERR_FILENO, STDOUT_FILENO) < 0) {
    throw Error(ErrorCode::kIo, "standard output", "cannot be kept for the answers");
  }
  std::signal(SIGPIPE, SIG_IGN);
  at::set_num_threads(std::max(1, train::usable_cpus() / options.sharers));
  cache::serve(STDIN_FILENO, answers.get(), [&](const nlohmann::json& parameters) -> std::unique_ptr<cache::Predictor> {
    if (options.module.ends_with(".pt2")) {
      return std::make_unique<PackagePredictor>(options.module, options.device, parameters);
    }
    return std::make_unique<ScriptPredictor>(options.module, train::choose_device(options.device), parameters);
  });
  return 0;
}

}  // namespace

std::function<int()> set_up_predictor(CLI::App& app) {
  app.description(
      "Computes features with a TorchScript module or an AOTInductor package, for unidle cache warm "
      "(docs/predictor-protocol.md).");
  const auto options = std::make_shared<PredictorOptions>();
  app.add_option(
         "MODULE", options->module,
         "TorchScript file, whose forward takes List[str] and gives List[Dict[str, Tensor]]; or a package, .pt2")
      ->required();
  app.add_option("--device", options->device, "auto, cpu or cuda")
      ->check(CLI::IsMember({"auto", "cpu", "cuda"}))
      ->capture_default_str();
  app.add_option("--sharers", options->sharers, "Such programs at once: each gets its part of the CPUs")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  return [options] { return serve_module(*options); };
}

}  // namespace unidle::workloads
