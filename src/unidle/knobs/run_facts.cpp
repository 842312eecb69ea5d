#include "unidle/knobs/run_facts.h"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>

#include "unidle/base/characters.h"
#include "unidle/base/numbers.h"
#include "unidle/knobs/detail/encoding.h"
#include "unidle/knobs/detail/links.h"
#include "unidle/knobs/detail/literal.h"
#include "unidle/knobs/detail/words.h"

namespace unidle::knobs {

namespace {

using detail::Words;

Words last_line_of(const Scalar& scalar) {
  const std::vector<std::string> keys = detail::keys_of(scalar.path);
  return keys.empty() ? Words() : detail::words_of(keys.back());
}

/// Whether `words` are exactly those of `list`, in any order.
bool are(const Words& words, std::string_view list) {
  const Words wanted = detail::split_words(list);
  return words.size() == wanted.size() && std::all_of(words.begin(), words.end(), [&](const std::string& word) {
           return detail::contains(wanted, word);
         });
}

bool are_any(const Words& words, std::initializer_list<std::string_view> lists) {
  return std::any_of(lists.begin(), lists.end(), [&](std::string_view list) { return are(words, list); });
}

/// Whether the path's groups are about the whole run: the device of ZeRO's offload, of a teacher or of an evaluation is
/// not the run's.
bool is_of_the_run(const std::string& path) {
  static const Words kGroups = detail::split_words(
      "train trainer run runtime general experiment system hardware env environment global common machine solver model "
      "args config cfg setting param parameter hparam default value init project compute resource");
  std::vector<std::string> keys = detail::keys_of(path);
  keys.pop_back();
  return std::all_of(keys.begin(), keys.end(), [&](const std::string& key) {
    const Words words = detail::words_of(key);
    return std::all_of(words.begin(), words.end(),
                       [&](const std::string& word) { return detail::contains(kGroups, word); });
  });
}

std::optional<std::string> other_device(const Words& words, const std::string& value) {
  static constexpr std::array<std::string_view, 10> kOthers = {"cpu", "mps", "tpu", "xla",  "xpu",
                                                               "hpu", "npu", "mlu", "musa", "sdaa"};
  const auto on = detail::boolean_of(value);
  if (on) {
    const bool cpu =
        *on ? are_any(words, {"use cpu", "force cpu", "cpu only", "cpu", "no cuda", "no gpu", "disable cuda"})
            : are_any(words, {"use cuda", "cuda", "use gpu", "enable cuda"});
    return cpu ? std::optional<std::string>("cpu") : std::nullopt;
  }
  if (!are_any(words,
               {"device", "accelerator", "train device", "device type", "distributed type", "trainer accelerator"})) {
    return std::nullopt;
  }
  std::string word = lower(value);
  word = word.substr(0, word.find(':'));
  word = word.starts_with("multi_") ? word.substr(6) : word;
  const bool other = std::find(kOthers.begin(), kOthers.end(), word) != kOthers.end();
  return other ? std::optional(word) : std::nullopt;
}

/// The number of steps in the value of a key that limits them; "100ba" counts Composer's batches.
std::optional<long long> steps_in(const Words& words, std::string value) {
  const bool duration = are(words, "max duration");
  if (duration && value.ends_with("ba")) {
    value.resize(value.size() - 2);
  } else if (duration ||
             !are_any(words, {"max step",           "max train step",      "max train iter",    "max iter",
                              "max iteration",      "total step",          "total iter",        "train iter",
                              "train step",         "num train step",      "num step",          "max update",
                              "total update",       "limit train batches", "limit train batch", "overfit batches",
                              "max step per epoch", "steps per epoch",     "num iter",          "max epoch iter",
                              "num iter per epoch", "total train step",    "max global step"})) {
    return std::nullopt;
  }
  const auto steps = parse_number<long long>(value);
  return steps && *steps > 0 ? steps : std::nullopt;
}

/// A number under "device" or "gpu" is an index; under the plural it is a count.
bool counts_gpus(const std::string& path) {
  static constexpr std::array<std::string_view, 10> kKeys = {
      "devices", "gpus",        "num_gpus",       "n_gpus",        "ngpus",
      "n_gpu",   "num_devices", "nproc_per_node", "gpus_per_node", "num_proc_per_node"};
  const std::vector<std::string> keys = detail::keys_of(path);
  return !keys.empty() && std::find(kKeys.begin(), kKeys.end(), lower(keys.back())) != kKeys.end();
}

/// Calls `visit` for each literal with the words of its key.
template <typename Visit>
void for_each_value(const ConfigFile& file, Visit visit) {
  for (const Scalar& scalar : file.scalars()) {
    if (const Scalar* literal = detail::literal_of(file, scalar)) {
      visit(scalar, last_line_of(scalar), detail::value_of(file.format(), *literal));
    }
  }
}

}  // namespace

std::optional<DeviceFact> device_other_than_gpu(const ConfigFile& file) {
  std::optional<DeviceFact> fact;
  for_each_value(file, [&](const Scalar& scalar, const Words& words, const std::string& value) {
    if (auto device = other_device(words, value); device && !fact && is_of_the_run(scalar.path)) {
      fact = DeviceFact{*device, scalar.path, value, scalar.line};
    }
  });
  return fact;
}

std::optional<long long> most_steps(const ConfigFile& file) {
  std::optional<long long> fewest;
  for_each_value(file, [&](const Scalar&, const Words& words, const std::string& value) {
    if (const auto steps = steps_in(words, value)) {
      fewest = std::min(*steps, fewest.value_or(*steps));
    }
  });
  return fewest;
}

long long devices_of_a_batch(const ConfigFile& file) {
  static const Words kWays = detail::split_words("pipeline pipe pp context cp sequence ring ulysses sp");
  static const Words kCounts = detail::split_words("parallel stage size degree");
  long long most = 1;
  for_each_value(file, [&](const Scalar&, const Words& words, const std::string& value) {
    const bool parts = detail::any_in(words, kWays) && detail::any_in(words, kCounts);
    const bool length = detail::contains(words, "length") || detail::contains(words, "micro");
    if (parts && !length) {
      most = std::max(most, parse_number<long long>(value).value_or(1));
    }
  });
  return most;
}

long long gpus_of_a_machine(const ConfigFile& file) {
  long long most = 1;
  std::map<std::string, long long> listed;  // by the list's path
  for_each_value(file, [&](const Scalar& scalar, const Words&, const std::string& value) {
    if (!counts_gpus(scalar.path) || !is_of_the_run(scalar.path)) {
      return;
    }
    const auto number = parse_number<long long>(value);
    if (scalar.path.ends_with(']')) {
      most = std::max(most, ++listed[scalar.path.substr(0, scalar.path.rfind('['))]);
    } else if (number) {
      most = std::max(most, *number);
    } else if (value.find_first_not_of("0123456789, ") == std::string::npos) {
      most = std::max(most, 1 + static_cast<long long>(std::count(value.begin(), value.end(), ',')));
    }
  });
  return most;
}

bool generates_samples(const ConfigFile& file) {
  static const Words kMethods = detail::split_words("ppo grpo rloo");
  const auto says_so = [](const std::string& key) {
    const Words words = detail::words_of(key);
    const bool rollouts = detail::contains(words, "actor") && detail::contains(words, "rollout");
    return detail::any_in(words, kMethods) || rollouts || are(words, "num generation");
  };
  return std::any_of(file.scalars().begin(), file.scalars().end(), [&](const Scalar& scalar) {
    const std::vector<std::string> keys = detail::keys_of(scalar.path);
    return std::any_of(keys.begin(), keys.end(), says_so);
  });
}

}  // namespace unidle::knobs
