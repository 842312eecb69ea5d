#include "engine/predictor_command.h"

#include <ATen/Parallel.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <memory>
#include <string>

#include "engine/predictors/package_predictor.h"
#include "engine/predictors/script_predictor.h"
#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/base/handle.h"
#include "unidle/cache/serve.h"
#include "unidle/train/device.h"
#include "workloads/protein/predictors.h"

namespace unidle::engine {

namespace {

struct PredictorOptions {
  std::string module;
  std::string device = "auto";
  int sharers = 1;
};

int serve_module(const PredictorOptions& options) {
  // A module may print; its output must not mix with the answers.
  const UniqueFd answers(::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3));
  if (!answers || ::dup2(STDERR_FILENO, STDOUT_FILENO) < 0) {
    throw Error(ErrorCode::kIo, "standard output", "cannot be kept for the answers");
  }
  std::signal(SIGPIPE, SIG_IGN);
  at::set_num_threads(std::max(1, train::usable_cpus() / options.sharers));
  cache::serve(STDIN_FILENO, answers.get(), [&](const nlohmann::json& parameters) -> std::unique_ptr<cache::Predictor> {
    if (auto builtin = workloads::protein::make_predictor(options.module)) {
      return builtin;
    }
    if (!exists(status_of(options.module))) {
      throw Error(ErrorCode::kInput, options.module, "not found",
                  fmt::format("give {}, or the path of a TorchScript file or an AOTInductor package (.pt2)",
                              fmt::join(workloads::protein::predictor_names(), ", ")));
    }
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
      "Computes features with a TorchScript module, an AOTInductor package or a predictor of its own, for unidle cache "
      "warm (docs/predictor-protocol.md).");
  const auto options = std::make_shared<PredictorOptions>();
  app.add_option(
         "MODULE", options->module,
         fmt::format(
             "TorchScript file, whose forward takes List[str] and gives List[Dict[str, Tensor]]; a package, .pt2; "
             "or {}",
             fmt::join(workloads::protein::predictor_names(), ", ")))
      ->required();
  app.add_option("--device", options->device, "auto, cpu or cuda")
      ->check(CLI::IsMember({"auto", "cpu", "cuda"}))
      ->capture_default_str();
  app.add_option("--sharers", options->sharers, "Such programs at once: each gets its part of the CPUs")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  return [options] { return serve_module(*options); };
}

}  // namespace unidle::engine
