#include "unidle/tune/advice/code_patch.h"

#include <algorithm>
#include <cctype>
#include <map>

#include "unidle/base/files.h"
#include "unidle/knobs/config_file.h"
#include "unidle/knobs/knob.h"

namespace unidle::tune {

namespace fs = std::filesystem;

namespace {

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

/// Behind the string literal or comment that begins at `at`; `at` itself where none does.
std::size_t behind_literal(std::string_view text, std::size_t at) {
  if (text[at] == '#') {
    return std::min(text.find('\n', at), text.size());
  }
  if (text[at] != '"' && text[at] != '\'') {
    return at;
  }
  const bool triple = text.substr(at, 3) == std::string(3, text[at]);
  const std::string end(triple ? 3 : 1, text[at]);
  for (std::size_t i = at + end.size(); i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (text.substr(i, end.size()) == end) {
      return i + end.size();
    }
  }
  return text.size();
}

struct Argument {
  std::size_t begin;
  std::size_t end;  // blanks and comments left out
};

/// The arguments of the call at `open`, and where its bracket closes. Nothing when it does not.
std::optional<std::vector<Argument>> arguments_of(std::string_view text, std::size_t open) {
  std::vector<Argument> found;
  int depth = 0;
  std::size_t begin = open + 1;
  std::size_t last = open;  // of what is neither blank nor comment
  const auto end_argument = [&] {
    if (last >= begin) {
      found.push_back({begin, last + 1});
    }
  };
  for (std::size_t i = open; i < text.size(); ++i) {
    if (const std::size_t behind = behind_literal(text, i); behind != i) {
      last = text[i] == '#' ? last : behind - 1;
      i = behind - 1;
      continue;
    }
    const char c = text[i];
    if (c == '(' || c == '[' || c == '{') {
      ++depth;
    } else if ((c == ')' || c == ']' || c == '}') && --depth == 0) {
      end_argument();
      return found;
    } else if (c == ',' && depth == 1) {
      end_argument();
      begin = i + 1;
      last = i;
      continue;
    }
    last = is_blank(c) || i == open ? last : i;
  }
  return std::nullopt;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) {
    text.remove_prefix(1);
  }
  return text;
}

/// The bracket of the only call in the text that one of `names` begins.
std::optional<std::size_t> only_call(std::string_view text, const std::vector<std::string_view>& names) {
  std::optional<std::size_t> found;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (const std::size_t behind = behind_literal(text, i); behind != i) {
      i = behind - 1;
      continue;
    }
    for (const std::string_view name : names) {
      if ((i == 0 || !is_word(text[i - 1])) && text.substr(i, name.size()) == name &&
          text.substr(i + name.size(), 1) == "(") {
        if (found) {
          return std::nullopt;
        }
        found = i + name.size();
      }
    }
  }
  return found;
}

std::optional<std::size_t> begin_of_line(std::string_view text, std::size_t line) {
  std::size_t begin = 0;
  for (std::size_t number = 1; number < line; ++number) {
    begin = text.find('\n', begin);
    if (begin == std::string_view::npos) {
      return std::nullopt;
    }
    ++begin;
  }
  return begin;
}

/// The bracket behind one of `names` on a line of its own number; nothing when it is not there.
std::optional<std::size_t> call_on_line(std::string_view text, std::size_t line,
                                        const std::vector<std::string_view>& names) {
  const auto begin = begin_of_line(text, line);
  if (!begin) {
    return std::nullopt;
  }
  const std::size_t end = std::min(text.find('\n', *begin), text.size());
  const auto open = only_call(text.substr(*begin, end - *begin), names);
  return open ? std::optional(*begin + *open) : std::nullopt;
}

/// Sets the only whole number on the line: of `count = 4`.
std::optional<std::string> with_number(std::string_view text, std::size_t line, std::string_view value) {
  const auto begin = line > 0 ? begin_of_line(text, line) : std::nullopt;
  if (!begin) {
    return std::nullopt;
  }
  std::vector<std::string_view> found;
  for (std::size_t i = *begin; i < text.size() && text[i] != '\n'; ++i) {
    if (const std::size_t behind = behind_literal(text, i); behind != i) {
      i = behind - 1;
    } else if (is_word(text[i])) {
      std::size_t end = i;
      while (end < text.size() && (is_word(text[end]) || text[end] == '.')) {
        ++end;
      }
      const std::string_view word = text.substr(i, end - i);
      if (std::all_of(word.begin(), word.end(), [](unsigned char c) { return std::isdigit(c) != 0; })) {
        found.push_back(word);
      }
      i = end - 1;
    }
  }
  if (found.size() != 1) {
    return std::nullopt;
  }
  const auto at = static_cast<std::size_t>(found[0].data() - text.data());
  return std::string(text).replace(at, found[0].size(), value);
}

/// Batch size of the loader: by name, or its second argument.
std::optional<std::string> with_batch_size(std::string_view text, std::size_t open, std::string_view value) {
  const auto arguments = arguments_of(text, open);
  if (arguments && arguments->size() > 1) {
    const Argument& second = (*arguments)[1];
    const std::string_view words = trimmed(text.substr(second.begin, second.end - second.begin));
    if (words.find('=') == std::string_view::npos && !words.starts_with("*")) {
      return std::string(text).replace(second.end - words.size(), words.size(), value);
    }
  }
  return with_argument(text, open, "batch_size", value);
}

struct Place {
  std::string file;
  std::size_t line = 0;
};

std::optional<Place> place_of(const std::string& where) {
  const std::size_t colon = where.rfind(':');
  const std::string line = colon == std::string::npos ? "" : where.substr(colon + 1);
  if (line.empty() || !std::all_of(line.begin(), line.end(), [](unsigned char c) { return std::isdigit(c) != 0; }) ||
      line.size() > 9 || where[0] == '/') {
    return std::nullopt;
  }
  return Place{where.substr(0, colon), std::stoul(line)};
}

/// One change in the file; nothing when it cannot be placed for certain.
std::optional<std::string> changed(const std::string& text, std::size_t line, const CodeChange& change) {
  const knobs::Knob* knob = knobs::find_knob(change.knob);
  if (knob != nullptr && knob->change.code_place == "loader" && !knob->change.argument.empty()) {
    const auto open = call_on_line(text, line, {"DataLoader"});
    return open ? with_argument(text, *open, knob->change.argument, change.value) : std::nullopt;
  }
  if (change.knob == "batch.size") {
    const auto open = call_on_line(text, line, {"DataLoader"});
    return open ? with_batch_size(text, *open, change.value) : std::nullopt;
  }
  if (change.knob == "batch.accumulation") {
    return with_number(text, line, change.value);
  }
  if (change.knob == "optimizer.fused") {
    static const std::vector<std::string_view> kOptimizers = {"Adam", "AdamW", "SGD", "Adagrad"};
    const auto open = line > 0 ? call_on_line(text, line, kOptimizers) : only_call(text, kOptimizers);
    return open ? with_argument(text, *open, "fused", change.value) : std::nullopt;
  }
  if (change.knob == "optimizer.zero_to_none") {
    const auto open = line > 0 ? call_on_line(text, line, {"zero_grad"}) : only_call(text, {"zero_grad"});
    return open ? with_argument(text, *open, "set_to_none", change.value) : std::nullopt;
  }
  return std::nullopt;
}

using Files = std::map<std::string, std::pair<std::string, std::string>>;  // before, after

/// Makes those of the changes that are of the batch, or the others. False when one of them could not be placed.
bool edit(Files& files, const std::vector<CodeChange>& changes, bool of_batch, const std::string& main_file,
          const fs::path& folder) {
  bool all = true;
  for (const CodeChange& change : changes) {
    if (change.knob.starts_with("batch.") != of_batch) {
      continue;
    }
    const auto place = place_of(change.where);
    const std::string file = place ? place->file : main_file;
    const auto text = file.empty() ? std::nullopt : try_read_file(folder / file);
    if (!text) {
      all = false;
      continue;
    }
    auto& [before, after] = files.try_emplace(file, *text, *text).first->second;
    if (auto edited = changed(after, place ? place->line : 0, change)) {
      after = std::move(*edited);
    } else {
      all = false;
    }
  }
  return all;
}

}  // namespace

std::optional<std::string> with_argument(std::string_view text, std::size_t open, std::string_view name,
                                         std::string_view value) {
  const auto arguments = arguments_of(text, open);
  if (!arguments) {
    return std::nullopt;
  }
  std::string out(text);
  for (const Argument& each : *arguments) {
    const std::string_view words = trimmed(text.substr(each.begin, each.end - each.begin));
    if (words.starts_with("**")) {
      return std::nullopt;
    }
    if (words.starts_with(name) && trimmed(words.substr(name.size())).starts_with("=") &&
        !trimmed(words.substr(name.size())).starts_with("==")) {
      const std::size_t begin = text.find('=', each.end - words.size()) + 1;
      const std::size_t skip = text.substr(begin).size() - trimmed(text.substr(begin)).size();
      return out.replace(begin + skip, each.end - begin - skip, value);
    }
  }
  const std::string added = std::string(name) + "=" + std::string(value);
  return arguments->empty() ? out.insert(open + 1, added) : out.insert(arguments->back().end, ", " + added);
}

std::string code_patch(const std::vector<CodeChange>& changes, const fs::path& folder) {
  // Where no line of its own is known, a change belongs to the file that makes the loader or calls the model.
  std::string main_file;
  for (const CodeChange& change : changes) {
    const auto place = place_of(change.near);
    main_file = main_file.empty() && place ? place->file : main_file;
  }
  Files files;
  // Half of a change of the batch would be another effective batch.
  if (Files with_batch; edit(with_batch, changes, true, main_file, folder)) {
    files = std::move(with_batch);
  }
  edit(files, changes, false, main_file, folder);
  std::string patch;
  for (const auto& [file, texts] : files) {
    patch += knobs::unified_diff(texts.first, texts.second, file);
  }
  return patch;
}

}  // namespace unidle::tune
