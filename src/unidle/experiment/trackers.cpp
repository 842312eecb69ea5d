#include "unidle/experiment/trackers.h"

#include <array>
#include <cstdlib>

namespace unidle::experiment {

namespace fs = std::filesystem;

namespace {

struct Variable {
  const char* name;
  const char* value;  // a leading $OWN stands for the trial's own folder
};

// Tokens are set to the empty string rather than unset: libraries treat that as no token and do not look for token
// files. Trackers are set offline rather than disabled where possible: logging is part of what a trial measures.
constexpr Variable kVariables[] = {
    // Weights & Biases
    {"WANDB_MODE", "offline"},
    {"WANDB_DIR", "$OWN"},
    {"WANDB_API_KEY", ""},
    // MLflow
    {"MLFLOW_TRACKING_URI", "file://$OWN/mlruns"},
    {"MLFLOW_ALLOW_FILE_STORE", "true"},  // required by 3.17 and later
    {"MLFLOW_TRACKING_TOKEN", ""},
    {"MLFLOW_TRACKING_USERNAME", ""},
    {"MLFLOW_TRACKING_PASSWORD", ""},
    {"MLFLOW_RUN_ID", ""},
    // Hugging Face: public data can still be read; nothing can be pushed
    {"HF_TOKEN", ""},
    {"HUGGING_FACE_HUB_TOKEN", ""},
    {"HF_TOKEN_PATH", "/dev/null"},
    {"HF_HUB_DISABLE_IMPLICIT_TOKEN", "1"},
    {"HF_HUB_DISABLE_TELEMETRY", "1"},
    // Comet: `start` reads the first, Experiment the second
    {"COMET_START_ONLINE", "0"},
    {"COMET_AUTO_LOG_DISABLE", "1"},
    {"COMET_OFFLINE_DIRECTORY", "$OWN"},
    {"COMET_API_KEY", ""},
    // Neptune
    {"NEPTUNE_MODE", "offline"},
    {"NEPTUNE_API_TOKEN", ""},
    // ClearML
    {"CLEARML_OFFLINE_MODE", "1"},
    {"CLEARML_CACHE_DIR", "$OWN"},
    {"CLEARML_API_ACCESS_KEY", ""},
    {"CLEARML_API_SECRET_KEY", ""},
    // SwanLab
    {"SWANLAB_MODE", "offline"},
    {"SWANLAB_API_KEY", ""},
    // Standard sources of passwords, and prompts on a terminal
    {"NETRC", "/dev/null"},
    {"GIT_TERMINAL_PROMPT", "0"},
};

constexpr std::array<const char*, 12> kFiles = {".netrc",
                                                ".git-credentials",
                                                ".huggingface/token",
                                                ".cache/huggingface/token",
                                                ".cache/huggingface/stored_tokens",
                                                ".config/wandb/settings",
                                                ".mlflow/credentials",
                                                ".comet.config",
                                                ".neptune_tokens",
                                                ".swanlab/.netrc",
                                                ".kaggle/kaggle.json",
                                                "clearml.conf"};

}  // namespace

std::map<std::string, std::string> muted_trackers(const fs::path& own) {
  std::map<std::string, std::string> environment;
  for (const Variable& variable : kVariables) {
    std::string value = variable.value;
    if (const std::size_t at = value.find("$OWN"); at != std::string::npos) {
      value.replace(at, 4, own.string());
    }
    environment[variable.name] = value;
  }
  return environment;
}

std::vector<fs::path> files_with_tokens() {
  std::vector<fs::path> files;
  if (const char* home = std::getenv("HOME"); home != nullptr && *home != '\0') {
    for (const char* name : kFiles) {
      files.push_back(fs::path(home) / name);
    }
  }
  return files;
}

}  // namespace unidle::experiment
