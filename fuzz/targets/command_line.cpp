// Words of a command, one a line: the knobs in them, and what `unidle run --apply` takes. The same bytes as a file for
// it.
#include "unidle/knobs/command_line.h"
#include "fuzz.h"
#include "unidle/base/shell.h"
#include "unidle/experiment/working_folder.h"
#include "unidle/knobs/apply_arguments.h"
#include "unidle/knobs/knob.h"

namespace unidle::fuzz::targets {

namespace {

void apply(const std::vector<std::string>& arguments) {
  may_refuse([&] { knobs::encode_apply(knobs::apply_settings(arguments)); }, {ErrorCode::kInput, ErrorCode::kUsage});
}

void run_command_line(std::string_view bytes) {
  std::vector<std::string> words;
  for (const std::string_view line : lines_of(bytes)) {
    words.emplace_back(line);
  }
  for (const knobs::CommandSetting& setting : knobs::recognize_command(words)) {
    require(setting.index < words.size());
    const auto changed = knobs::apply_to_command(words, setting.knob, setting.means.value_or(true));
    require(!changed || !changed->empty() || words.size() == 1);
  }
  shell_joined(words);
  for (const std::string& word : words) {
    if (word.find('=') != std::string::npos) {  // otherwise it names a file
      apply({word});
    }
    for (const knobs::Knob* knob : knobs::all_catalogue()) {
      if (const auto value = knobs::parse_value(*knob, word)) {
        require(knobs::takes(*knob, *value) && knobs::parse_value(*knob, value->to_text()) == value);
        knobs::encode_apply({{knob->name, *value}});
      }
    }
  }
  apply({put("apply.yaml", bytes).string()});
  put("folder/program/train.py", bytes);
  experiment::named_siblings(scratch_folder() / "folder" / "program", words);
}

}  // namespace

const Target& command_line() {
  static const Target kTarget = {"command_line", run_command_line};
  return kTarget;
}

}  // namespace unidle::fuzz::targets
