#include "unidle/tune/trials/edits.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "unidle/base/characters.h"
#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/knobs/change.h"
#include "unidle/knobs/place.h"

namespace unidle::tune {

namespace fs = std::filesystem;

namespace {

bool is_in_folder(const std::string& file) {
  return !file.empty() && !file.starts_with('/') && !fs::path(file).lexically_normal().string().starts_with("..");
}

/// False for the command of another run than the recorded one.
bool is_word_of(const std::vector<std::string>& command, const knobs::ChangedWord& word) {
  return word.index < command.size() && command[word.index] == word.before;
}

/// The last line that a patch adds, in place of words for it.
std::string last_added(const std::vector<knobs::ChangedLines>& changes) {
  std::string added;
  for (const knobs::ChangedLines& each : changes) {
    for (const std::string& line : each.after) {
      added = std::ranges::find(each.before, line) == each.before.end() ? trimmed(line) : added;
    }
  }
  return added;
}

/// What a fix shows; without lines and a word when it shows neither.
Edit edit_of(const knobs::Change& fix) {
  Edit edit{.to = *fix.to, .words = {}, .file = {}, .lines = {}};
  if (!fix.patch.empty()) {
    constexpr std::string_view kMark = "+++ ";
    const std::size_t name = fix.patch.find(kMark);
    const std::size_t begin = name == std::string::npos ? fix.patch.size() : name + kMark.size();
    edit.file = fix.patch.substr(begin, fix.patch.find_first_of("\t\n", begin) - begin);
    edit.lines = knobs::changes_of_diff(fix.patch);
    edit.words = last_added(edit.lines);
  } else if (const auto place = fix.in_program ? knobs::place_of(fix.in_program->where) : std::nullopt;
             place && !fix.in_program->after.empty()) {
    edit.words = fix.in_program->words;
    edit.file = place->file;
    edit.lines = {{place->line, fix.in_program->before, fix.in_program->after}};
  } else if (fix.in_program && fix.in_program->word) {
    edit.words = fix.in_program->words;
    edit.word = fix.in_program->word;
  }
  return edit;
}

knobs::Settings part(const Edits& edits, const knobs::Settings& changes, bool edited) {
  knobs::Settings found;
  for (const auto& [knob, value] : changes) {
    const auto edit = edits.find(knob);
    if ((edit != edits.end() && edit->second.to == value) == edited) {
      found.set(knob, value);
    }
  }
  return found;
}

}  // namespace

std::string Edit::where() const { return lines.empty() ? "" : fmt::format("{}:{}", file, lines.front().line); }

Edits edits_of(const diagnose::Diagnosis& diagnosis, const knobs::ProgramCommand& program) {
  Edits edits;
  for (const diagnose::Finding& finding : diagnosis.findings) {
    for (const knobs::Change& fix : finding.fixes) {
      if (!fix.to || fix.in_code || (!fix.by_hand && knobs::reaches(program, fix.knob, *fix.to))) {
        continue;
      }
      Edit edit = edit_of(fix);
      const bool of_file = !edit.lines.empty() && is_in_folder(edit.file);
      if (of_file || (edit.word && is_word_of(program.words, *edit.word))) {
        edits.try_emplace(fix.knob, std::move(edit));
      }
    }
  }
  return edits;
}

Edits without_lines(Edits edits) {
  std::erase_if(edits, [](const auto& edit) { return !edit.second.lines.empty(); });
  return edits;
}

bool needs_package(const Edit& edit) {
  return std::ranges::any_of(edit.lines, [](const knobs::ChangedLines& each) {
    return std::ranges::any_of(each.after, [&](const std::string& line) {
      return line.starts_with("import unidle") && std::ranges::find(each.before, line) == each.before.end();
    });
  });
}

knobs::Settings edited_part(const Edits& edits, const knobs::Settings& changes) { return part(edits, changes, true); }

knobs::Settings unedited_part(const Edits& edits, const knobs::Settings& changes) {
  return part(edits, changes, false);
}

std::vector<std::string> edited_command(const Edits& edits, const knobs::Settings& changes,
                                        std::vector<std::string> command) {
  for (const auto& [knob, value] : edited_part(edits, changes)) {
    if (const auto& word = edits.at(knob).word; word && is_word_of(command, *word)) {
      command[word->index] = word->after;
    }
  }
  return command;
}

std::vector<experiment::EditedFile> edited_files(const Edits& edits, const knobs::Settings& changes,
                                                 const fs::path& folder) {
  // From the last line to the first, so that a change does not move the lines of the next one.
  std::map<std::string, std::map<int, const knobs::ChangedLines*, std::greater<>>> by_file;
  for (const auto& [knob, value] : edited_part(edits, changes)) {
    const Edit& edit = edits.at(knob);
    for (const knobs::ChangedLines& lines : edit.lines) {
      if (!by_file[edit.file].emplace(lines.line, &lines).second) {
        throw Error(ErrorCode::kInput, edit.where(), "would be changed twice", "make one of the changes yourself");
      }
    }
  }
  std::vector<experiment::EditedFile> files;
  for (const auto& [file, changes_of_file] : by_file) {
    std::string text = read_file(folder / file);
    for (const auto& [line, lines] : changes_of_file) {
      auto edited = knobs::with_lines(text, *lines);
      if (!edited) {
        throw Error(ErrorCode::kInput, fmt::format("{}:{}", file, line), "has other lines than the recorded program",
                    "record it again");
      }
      text = std::move(*edited);
    }
    files.push_back({file, std::move(text)});
  }
  return files;
}

}  // namespace unidle::tune
