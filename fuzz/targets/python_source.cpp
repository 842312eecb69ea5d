// A program's source as the tuner reads it, for the patch that it shows. The first lines name what is to be changed:
// "KNOB VALUE LINE", up to an empty line; the source follows.
#include <algorithm>
#include <charconv>

#include "fuzz.h"
#include "unidle/knobs/config_file.h"
#include "unidle/knobs/detail/python_reader.h"
#include "unidle/knobs/python_edit.h"
#include "unidle/knobs/python_tokens.h"
#include "unidle/tune/advice/code_patch.h"

namespace unidle::fuzz::targets {

namespace {

void read_tokens(const std::string& source) {
  may_refuse([&] {
    std::size_t last = 0;
    for (const knobs::PythonToken& token : knobs::tokenize_python(source, "a.py")) {
      require(token.begin >= last && token.begin <= token.end && token.end <= source.size());
      last = token.end;
      if (token.simple) {
        knobs::python_string_value(std::string_view(source).substr(token.begin, token.end - token.begin));
      }
    }
  });
  may_refuse([&] {
    const knobs::detail::PythonFile file = knobs::detail::read_python(source, "a.py");
    for (const knobs::detail::PythonGroup& group : file.groups) {
      require(group.open <= group.content_end && group.content_end <= group.close && group.close < source.size());
    }
  });
}

void run_python_source(std::string_view bytes) {
  const auto [head, source] = split(bytes, "\n\n");
  const std::string text(source);
  read_tokens(text);
  put("program/a.py", source);
  std::vector<tune::CodeChange> changes;
  for (const std::string_view line : lines_of(head)) {
    const auto [knob, rest] = split(line, " ");
    const auto [value, place] = split(rest, " ");
    changes.push_back(
        {std::string(knob), place.empty() ? "" : "a.py:" + std::string(place), "", std::string(value), "a.py:1"});
  }
  tune::code_patch(changes, scratch_folder() / "program");
  if (const auto program = knobs::PythonSource::read(text)) {
    int left = 8;
    for (std::size_t at = text.find('('); at != std::string::npos && left-- > 0; at = text.find('(', at + 1)) {
      const std::size_t before = text.find_last_of(" \t\n.,([{=", at == 0 ? 0 : at - 1);
      const std::size_t begin = before == std::string::npos ? 0 : std::min(before + 1, at);
      if (const auto call = program->only_call({std::string_view(text).substr(begin, at - begin)})) {
        program->with_argument(*call, "num_workers", "4");
        program->with_second_argument(*call, "batch_size", "4");
        program->given_second(*call, "batch_size");
      }
    }
  }
  knobs::unified_diff(head, source, "a.py");
}

}  // namespace

const Target& python_source() {
  static const Target kTarget = {"python_source", run_python_source};
  return kTarget;
}

}  // namespace unidle::fuzz::targets
