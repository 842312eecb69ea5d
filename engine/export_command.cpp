#include "engine/export_command.h"

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "unidle/base/error.h"
#include "unidle/base/terminal.h"
#include "unidle/train/checkpoints/checkpoint_folder.h"
#include "unidle/train/checkpoints/weights.h"

namespace unidle::engine {

namespace {

struct ExportOptions {
  std::string checkpoint;
  std::vector<std::string> outputs;
  bool last = false;
};

/// Files beside the checkpoint, one per format.
std::vector<std::string> default_outputs(const std::filesystem::path& checkpoint) {
  const std::filesystem::path stem = checkpoint.parent_path() / checkpoint.stem();
  return {stem.string() + ".weights.pt", stem.string() + ".safetensors"};
}

/// Refuses to replace a checkpoint: weights alone cannot resume a run.
void check_is_no_checkpoint(const std::string& path) {
  try {
    std::filesystem::path found;
    train::read_newest(path, found);
  } catch (const Error&) {
    return;
  }
  throw Error(ErrorCode::kUsage, path, "is a checkpoint, which weights would replace", "name another file");
}

int export_weights(const ExportOptions& options) {
  std::filesystem::path found;
  for (const std::string& path : options.outputs) {
    check_is_no_checkpoint(path);
  }
  const train::Snapshot snapshot = train::read_newest(options.checkpoint, found);
  const train::Weights weights = train::weights_of(snapshot, !options.last);
  for (const std::string& path : options.outputs.empty() ? default_outputs(found) : options.outputs) {
    train::write_weights(path, weights);
    print_to(stdout, "{}: {} tensors of {} after {} samples{}\n", path, weights.size(), snapshot.workload,
             snapshot.position.samples, !options.last && !snapshot.averages.empty() ? ", averaged" : "");
  }
  return 0;
}

}  // namespace

std::function<int()> set_up_export(CLI::App& app) {
  app.description("Write the weights of a checkpoint as files that Python reads");
  app.footer("Examples:\n  unidle export checkpoints\n  unidle export checkpoints -o model.safetensors");
  const auto options = std::make_shared<ExportOptions>();
  app.add_option("CHECKPOINT", options->checkpoint, "A checkpoint, or the folder that it lies in")->required();
  app.add_option("-o,--output", options->outputs,
                 "FILE.safetensors, or FILE.pt for torch.load; by default both, beside the checkpoint")
      ->type_name("FILE");
  app.add_flag("--last", options->last, "The weights of the last step, where there are averaged ones");
  return [options] { return export_weights(*options); };
}

}  // namespace unidle::engine
