// Thresholds of the user's own.
#include "unidle/diagnose/policy.h"
#include "fuzz.h"
#include "unidle/diagnose/policy_file.h"

namespace unidle::fuzz::targets {

const Target& policy() {
  static const Target kTarget = {
      "policy", [](std::string_view bytes) {
        may_refuse([&] {
          const std::string text = diagnose::to_yaml(diagnose::read_policy(put("policy.yaml", bytes)));
          require(diagnose::to_yaml(diagnose::read_policy(put("policy.yaml", text))) == text);
        });
      }};
  return kTarget;
}

}  // namespace unidle::fuzz::targets
