#include "unidle/tune/code_changes.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "unidle/base/secrets.h"
#include "unidle/base/shell.h"
#include "unidle/tune/reach.h"

namespace unidle::tune {

namespace {

struct Line {
  std::string_view knob;
  std::string_view place;  // in ProgramPlan::places
  std::string_view code;   // {0}: the value as Python writes it
};

constexpr Line kLines[] = {
    {"loader.workers", "loader", "DataLoader(..., num_workers={0})"},
    {"loader.pin_memory", "loader", "DataLoader(..., pin_memory={0})"},
    {"loader.persistent_workers", "loader", "DataLoader(..., persistent_workers={0})"},
    {"loader.prefetch_factor", "loader", "DataLoader(..., prefetch_factor={0})"},
    {"loader.gather", "loader",
     "DataLoader(dataset, sampler=BatchSampler(RandomSampler(dataset), batch_size, drop_last), batch_size=None): the "
     "dataset then gets a list of indices"},
    {"batch.size", "loader", "DataLoader(..., batch_size={0})"},
    {"batch.accumulation", "accumulation", "count to {0} before a step, and divide the loss by it"},
    {"cache.features", "dataset",
     "keep what __getitem__ computes, by index, e.g. computed once before the first epoch"},
    {"transfer.non_blocking", "", "batch.to(device, non_blocking={0})"},
    {"precision.tf32", "",
     "torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = {0}, before the model is made"},
    {"cudnn.benchmark", "", "torch.backends.cudnn.benchmark = {0}, before the first step"},
    {"optimizer.fused", "optimizer", "fused={0} where the optimiser is made, e.g. torch.optim.AdamW(..., fused={0})"},
    {"optimizer.zero_to_none", "zero_grad", "optimizer.zero_grad(set_to_none={0})"},
    {"validation.every", "validation", "make one in {0} of its calls"},
    {"metrics.interval", "",
     "add up the loss on the device (total += loss.detach()) and read it with .item() every {0} steps"},
    {"cpu.threads", "", "torch.set_num_threads({0})"},
};

std::string python_value(const std::string& value) {
  return value == "true" ? "True" : value == "false" ? "False" : value;
}

/// What depends on more than the value.
std::string special_code(const Change& change, const std::string& device) {
  if (change.knob == "precision.amp") {
    if (change.to == "off") {
      return "no torch.autocast around the forward pass";
    }
    const std::string kind = device == "cpu" ? "cpu" : "cuda";
    const std::string around = fmt::format("with torch.autocast(\"{}\", dtype=torch.{}): around the forward pass", kind,
                                           change.to == "bf16" ? "bfloat16" : "float16");
    return change.to == "bf16" ? around
                               : around + fmt::format(
                                              ", and a torch.amp.GradScaler(\"{}\"): scaler.scale(loss).backward(), "
                                              "scaler.unscale_(optimizer) before gradients are clipped, "
                                              "scaler.step(optimizer), scaler.update()",
                                              kind);
  }
  if (change.knob == "layout.channels_last") {
    return change.to == "true" ? "model.to(memory_format=torch.channels_last), and the same for its 4-d inputs"
                               : "no memory_format=torch.channels_last";
  }
  if (change.knob == "compile.mode") {
    return change.to == "off"       ? "no torch.compile"
           : change.to == "default" ? "model = torch.compile(model)"
                                    : fmt::format("model = torch.compile(model, mode=\"{}\")", change.to);
  }
  return {};
}

}  // namespace

std::vector<CodeChange> code_changes(const std::vector<Change>& changes,
                                     const std::map<std::string, std::string>& places, const std::string& device) {
  const auto place = [&](const std::string& name) {
    const auto found = places.find(name);
    return found == places.end() ? std::string() : found->second;
  };
  const std::string near = place("loader").empty() ? place("model") : place("loader");
  std::vector<CodeChange> found;
  for (const Change& change : changes) {
    const std::string value = python_value(change.to);
    if (const std::string code = special_code(change, device); !code.empty()) {
      found.push_back({change.knob, place("model"), code, value, near});
      continue;
    }
    const auto* line =
        std::find_if(std::begin(kLines), std::end(kLines), [&](const Line& each) { return each.knob == change.knob; });
    if (line != std::end(kLines)) {
      found.push_back({change.knob, line->place.empty() ? std::string() : place(std::string(line->place)),
                       fmt::format(fmt::runtime(line->code), value), value, near});
    }
  }
  return found;
}

std::string run_command(const Settings& changes, const std::vector<std::string>& command) {
  const Reach reached = reach(command, changes);
  if (reached.at_run_time.empty()) {
    return shell_joined(mask_secrets(reached.command));
  }
  std::string text = "unidle run";
  for (const auto& [knob, value] : reached.at_run_time) {
    text += " --apply " + shell_quoted(knob + "=" + value);
  }
  return text + " -- " + shell_joined(mask_secrets(reached.command));
}

}  // namespace unidle::tune
