// The files of a search that goes on: a plan of a program, one of a workload, or a trial.
#include "unidle/tune/trials/trial_store.h"
#include "fuzz.h"

namespace unidle::fuzz::targets {

namespace {

void run_trial_store(std::string_view bytes) {
  static const knobs::Settings kChanges = {{"loader.workers", 2}};
  tune::TrialStore store(scratch_folder() / "searches", "a search");
  static const std::filesystem::path kTrial = [&] {  // its name is the store's own business
    store.keep(kChanges, 0, {});
    for (const auto& entry : std::filesystem::directory_iterator(
             std::filesystem::directory_iterator(scratch_folder() / "searches")->path())) {
      return std::filesystem::relative(entry.path(), scratch_folder());
    }
    std::abort();
  }();
  for (const char* name : {"plan.json", "trial-plan.json"}) {
    put(kTrial.parent_path() / name, bytes);
  }
  put(kTrial, bytes);
  if (const auto plan = store.plan()) {
    tune::steps_with(*plan, kChanges);
    store.keep(*plan);
    require(store.plan().has_value());
  }
  if (const auto plan = store.trial_plan()) {
    store.keep(*plan);
    require(store.trial_plan().has_value());
  }
  if (const auto trial = store.find(kChanges, 0)) {
    store.keep(kChanges, 0, *trial);
    const auto again = store.find(kChanges, 0);
    require(again && again->effective == trial->effective && again->losses.size() == trial->losses.size());
  }
}

}  // namespace

const Target& trial_store() {
  static const Target kTarget = {"trial_store", run_trial_store};
  return kTarget;
}

}  // namespace unidle::fuzz::targets
