#include "unidle/knobs/reference.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

#include "unidle/knobs/framework.h"
#include "unidle/knobs/knob.h"

namespace unidle::knobs {

namespace {

constexpr const char* kDeclined =
    "\n"
    "## What is not changed in a running program\n"
    "\n"
    "`--apply` and the tuner decline these, with the reason, unless a word of the command sets them and can "
    "be changed there, or, for the tuner, an option of the program that it parses with argparse:\n"
    "\n"
    "- `batch.size`, `batch.accumulation`: `optimizer.step`, `zero_grad`, the schedule's `step`, clipping and logging "
    "may happen once in several\n"
    "  turns of the loop or in each; `len(loader)` goes into schedules and the end of an epoch; whether a loss is a "
    "mean or a sum shows only when\n"
    "  it is too late. `unidle optimize` shows the change as a patch to review instead.\n"
    "- `metrics.interval`: only the program knows what it does with a value that it reads.\n"
    "- `validation.interval`: it is unknown whether it counts steps or epochs. `validation.every` leaves out "
    "validations where a function of "
    "the program makes them that returns nothing.\n"
    "- `data.on_device`: the program moves its batches itself.\n"
    "- `compile.mode=graph`, `compile.mode=fused`: a captured step has fixed addresses, which the program's own "
    "code would have to respect.\n";

constexpr const char* kHead =
    "# Knobs\n\n"
    "<!-- Generated from src/unidle/knobs/catalogue; `./dev format` writes it. -->\n\n"
    "A knob is a setting that unidle understands. Its class says what turning it does to the result:\n\n"
    "- **exact** leaves the arithmetic alone. At most the order of sums changes with the number of threads.\n"
    "- **numeric** changes rounding: training comes out the same within noise.\n"
    "- **semantic** changes what is trained. unidle never changes such a knob unless asked to with `--allow "
    "semantic`.\n\n"
    "In the configuration of a workload the part before the dot is the group: `loader: {workers: 4}`.\n";

constexpr const char* kNames =
    "\n## In configurations of other programs\n\n"
    "`unidle knobs recognize FILE...` finds these knobs in YAML, JSON (comments and trailing commas allowed), TOML "
    "and Python files (assignments of literals, keyword arguments such as mmengine's `dict(num_workers=2)`, defaults "
    "of "
    "`add_argument`), under whatever name the program has for them:\n\n"
    "    $ unidle knobs recognize ds_config.json\n"
    "    ds_config.json: deepspeed, 3 settings\n"
    "      batch.size                 4            ds_config.json:2: train_micro_batch_size_per_gpu\n"
    "      batch.size                 64           ds_config.json:3: train_batch_size (over all devices)\n"
    "      precision.amp              fp16         ds_config.json:4: fp16.enabled\n\n"
    "`--format json` prints `unidle.knobs/1`: per file the framework, each setting with knob, value, meaning, phase "
    "(training or validation), path and line, what each knob is configured to altogether, and all other keys. `--all` "
    "adds the other keys to the text.\n\n"
    "A key is read by its words, in any order and joined in any way: `num_workers`, `NUM_WORKERS`, `numWorkers` and "
    "`--num-workers` are one. Below, a word after `?` may be missing and `a|b` is either; any other word makes it "
    "another key, so that `preprocessing_num_workers` or `stage3_prefetch_bucket_size` are no knobs. Where the key "
    "alone "
    "does not tell, the one above it is read along: `amp: {enabled: true}`. Keys below one of the words in the last "
    "column are something else: ZeRO's `offload_param.pin_memory` is not the loader's; nor are values to be tried, "
    "below "
    "`search` or `sweep`, settings. The nearest word of `train` or "
    "`val`, `eval`, `test` above or in the key decides the phase. The value must be of the right kind. What refers to "
    "another key (`${a.b}`, `@a`, a YAML alias) counts; where other settings take the value too, the key gets one of "
    "its own; what a merge key "
    "copies "
    "is not listed again.\n\n"
    "| knob | names | what the value says | not below |\n|---|---|---|---|\n";

std::string_view describe(Meaning meaning) {
  switch (meaning) {
    case Meaning::kValue: return "the value";
    case Meaning::kInverted: return "the opposite";
    case Meaning::kGlobalBatch: return "the sum over devices";
    case Meaning::kSwitch: return "on or off, or the choice";
    case Meaning::kMeansFp16: return "fp16 when true";
    case Meaning::kMeansBf16: return "bf16 when true";
    case Meaning::kFormat: return "the number format";
    case Meaning::kOption: return "a detail of it";
    case Meaning::kMemoryFormat: return "channels_last or nhwc";
    case Meaning::kMatmulPrecision: return "high and medium are TF32";
    case Meaning::kOptimizerName: return "whether the name contains fused";
  }
  return "";
}

/// A bar would end the table's cell.
std::string in_cell(std::string text) {
  for (std::size_t at = text.find('|'); at != std::string::npos; at = text.find('|', at + 2)) {
    text.replace(at, 1, "\\|");
  }
  return text;
}

std::string names_table() {
  std::string text;
  for (const Knob* knob : all_catalogue()) {
    for (const Spelling& spelling : knob->names.spellings) {
      std::string remark(describe(spelling.meaning));
      remark += spelling.frameworks.empty() ? "" : "; only in " + spelling.frameworks;
      remark += spelling.weak ? "; only beside another knob" : "";
      text += fmt::format("| `{}` | {} | {} | {} |\n", knob->name, in_cell(spelling.words), remark,
                          knob->names.never_under);
    }
  }
  return text;
}

constexpr const char* kFrameworks =
    "\n## Words of frameworks\n\n"
    "Values are written in the words of the file's framework. A key is added only if the framework reads it, and "
    "a setting that the file alone cannot change is left alone. The table is `src/unidle/knobs/frameworks.cpp`; "
    "`python/tests/test_framework_words.py` checks it with the framework's own parser where that is installed. In "
    "a file of an unknown framework a word for a number format is written only where a comment lists it "
    "(`# bf16, fp16 or fp32`); otherwise `unidle optimize` says what it would have written. A setting whose comment "
    "says why it is what it is (`# only works with 32-bit precision`) is left alone, with the comment quoted.\n\n"
    "| framework | source | words | keys that may be added | left alone |\n|---|---|---|---|---|\n";

/// The texts of the items, joined by commas.
template <typename Item, typename TextOf>
std::string listed(const std::vector<Item>& items, TextOf text_of) {
  std::vector<std::string> texts;
  std::transform(items.begin(), items.end(), std::back_inserter(texts), text_of);
  return fmt::format("{}", fmt::join(texts, "; "));
}

std::string frameworks_table() {
  std::string text;
  for (const Framework& framework : all_frameworks()) {
    const std::string words = listed(framework.vocabulary, [](const Vocabulary& each) {
      return fmt::format("`{}`: {}", each.key, fmt::join(each.words, ", "));
    });
    const std::string keys =
        listed(framework.additions, [](const Addition& each) { return fmt::format("`{}`", each.key); });
    const std::string left = listed(framework.agreements, [](const Agreement& each) {
      return fmt::format("`{}`{}: {}", each.knob, each.when.empty() ? "" : fmt::format(" beside `{}`", each.when),
                         each.reason);
    });
    text += fmt::format("| {} | {} | {} | {} | {} |\n", framework.name, in_cell(framework.source), words, keys, left);
  }
  return text;
}

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
    const std::string fallback = knob->fallback ? fmt::format("`{}`", *knob->fallback) : "";
    text += fmt::format("| `{}` | {} | {} | {} | {} |\n", knob->name, to_string(knob->knob_class), values_of(*knob),
                        fallback, knob->explanation);
  }
  text += kNames + names_table() + kFrameworks + frameworks_table();
  for (const Knob* knob : all_catalogue()) {
    if (!knob->names.environment.empty()) {
      text += fmt::format("\nThe variable `{}` sets `{}` before a command.\n", knob->names.environment, knob->name);
    }
  }
  return text + kDeclined;
}

}  // namespace unidle::knobs
