// Recognises the framework of a configuration by its characteristic keys.
#include <algorithm>
#include <set>

#include "unidle/knobs/detail/words.h"
#include "unidle/knobs/framework.h"
#include "unidle/knobs/recognize.h"

namespace unidle::knobs {

namespace {

int count_present(const std::string& list, const std::set<std::string>& keys) {
  const detail::Words names = detail::split_list(list);
  return static_cast<int>(
      std::count_if(names.begin(), names.end(), [&](const std::string& name) { return keys.contains(name); }));
}

}  // namespace

std::string framework_of(const ConfigFile& file) {
  std::set<std::string> keys;
  std::size_t own = 0;
  for (const Scalar& scalar : file.scalars()) {
    own += find_knob(scalar.path) != nullptr;
    for (std::string& key : detail::keys_of(scalar.path)) {
      keys.insert(std::move(key));
    }
  }
  if (keys.contains("workload") && own > 0) {
    return "unidle";
  }
  for (const Framework& framework : all_frameworks()) {
    for (const Framework::Signature& signature : framework.signatures) {
      if (count_present(signature.keys, keys) >= signature.least) {
        return framework.name;
      }
    }
  }
  const bool interpolates = std::any_of(file.scalars().begin(), file.scalars().end(), [](const Scalar& scalar) {
    return scalar.value.find("${") != std::string::npos;
  });
  return interpolates ? "hydra" : own > 2 ? "unidle" : "pytorch";
}

const Framework* find_framework(std::string_view name) {
  const auto& all = all_frameworks();
  const auto found = std::find_if(all.begin(), all.end(), [&](const Framework& each) { return each.name == name; });
  return found == all.end() ? nullptr : &*found;
}

const std::vector<std::string>* words_at(std::string_view framework, std::string_view knob, std::string_view path) {
  const Framework* known = find_framework(framework);
  const std::string_view key = path.substr(path.rfind('.') + 1);
  if (known != nullptr) {
    for (const Vocabulary& vocabulary : known->vocabulary) {
      if (vocabulary.knob == knob && vocabulary.key == key) {
        return &vocabulary.words;
      }
    }
  }
  return nullptr;
}

}  // namespace unidle::knobs
