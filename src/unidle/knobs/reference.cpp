#include "unidle/knobs/reference.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "unidle/knobs/knob.h"

namespace unidle::knobs {

namespace {

constexpr const char* kHead =
    "# Knobs\n\n"
    "<!-- Generated from src/unidle/knobs/catalogue; `UNIDLE_UPDATE_DOCS=1 ctest -R knobs.Reference` writes it. -->\n\n"
    "A knob is a setting that unidle understands. Its class says what turning it does to the result:\n\n"
    "- **exact** leaves the arithmetic alone. At most the order of sums changes with the number of threads.\n"
    "- **numeric** changes rounding: training comes out the same within noise.\n"
    "- **semantic** changes what is trained. unidle never changes such a knob unless asked to with `--allow "
    "semantic`.\n\n"
    "In the configuration of a workload the part before the dot is the group: `loader: {workers: 4}`.\n";

std::string values_of(const Knob& knob) {
  if (knob.type == ValueType::kChoice) {
    return fmt::format("`{}`", fmt::join(knob.choices, "`, `"));
  }
  return std::string(to_string(knob.type));
}

}  // namespace

std::string reference_markdown() {
  std::string text = kHead;
  text += "\n| knob | class | values | default | what it does |\n|---|---|---|---|---|\n";
  for (const Knob* knob : all_catalogue()) {
    const std::string fallback = knob->fallback.empty() ? "" : "`" + knob->fallback + "`";
    text += fmt::format("| `{}` | {} | {} | {} | {} |\n", knob->name, to_string(knob->knob_class), values_of(*knob),
                        fallback, knob->explanation);
  }
  return text;
}

}  // namespace unidle::knobs
