#include "unidle/experiment/working_folder.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <string_view>

#include "unidle/base/characters.h"
#include "unidle/base/error.h"
#include "unidle/base/files.h"

namespace unidle::experiment {

namespace fs = std::filesystem;

namespace {

constexpr std::uintmax_t kLargestCopy = 256ULL << 20;
constexpr int kMostFiles = 5000;

constexpr std::uintmax_t kLongestScript_bytes = 1 << 20;

bool in_word(char c) { return is_letter(c) || is_digit(c) || c == '_'; }
bool is_quote(char c) { return c == '"' || c == '\''; }

/// The text after `".."` in `"..", "NAME"`, from the quote before NAME on; empty for any other text.
std::string_view behind_comma(std::string_view rest) {
  const auto skip_blanks = [&rest] { rest.remove_prefix(std::min(rest.find_first_not_of(" \t\r\n"), rest.size())); };
  skip_blanks();
  if (!rest.starts_with(',')) {
    return {};
  }
  rest.remove_prefix(1);
  skip_blanks();
  return rest.empty() || !is_quote(rest.front()) ? std::string_view() : rest;
}

/// Adds the NAMEs of "../NAME" and of "..", "NAME" in `text`.
void add_named(std::string_view text, std::set<std::string>& names) {
  for (std::size_t at = text.find(".."); at != std::string_view::npos; at = text.find("..", at + 1)) {
    const char before = at == 0 ? ' ' : text[at - 1];
    std::string_view rest = text.substr(at + 2);
    if (is_quote(before) && !rest.empty() && is_quote(rest.front())) {
      rest = behind_comma(rest.substr(1));
    } else if (before == '.' || before == '/' || in_word(before) || !rest.starts_with('/')) {
      continue;
    }
    rest.remove_prefix(rest.empty() ? 0 : 1);  // the slash or the quote
    const auto end =
        std::find_if_not(rest.begin(), rest.end(), [](char c) { return in_word(c) || c == '-' || c == '.'; });
    if (!rest.empty() && rest.front() != '.' && end != rest.begin()) {
      names.emplace(rest.begin(), end);
    }
  }
}

/// Adds the absolute paths in `text`: at its beginning, or after a character that can precede a value.
void add_absolute(std::string_view text, std::set<fs::path>& paths) {
  constexpr std::string_view kBefore = "=:,\"'[( \t\r\n";
  for (std::size_t at = text.find('/'); at != std::string_view::npos; at = text.find('/', at)) {
    std::size_t end = at;
    while (end < text.size() && (std::isalnum(static_cast<unsigned char>(text[end])) != 0 ||
                                 std::string_view("/._-+@").find(text[end]) != std::string_view::npos)) {
      ++end;
    }
    if (end > at + 1 && (at == 0 || kBefore.find(text[at - 1]) != std::string_view::npos)) {
      paths.insert(std::string(text.substr(at, end - at)));
    }
    at = end;
  }
}

/// True when `word` leads out of the folder and beyond its siblings.
bool leaves_siblings(const std::string& word) {
  const std::size_t at = word.find("..");
  return at != std::string::npos && word.find("..", at + 2) != std::string::npos;
}

bool leads_out(const fs::path& path) { return std::find(path.begin(), path.end(), "..") != path.end(); }

/// Records of earlier runs may be large, and programs do not read them.
bool is_record(const fs::path& entry) { return entry.filename() == ".unidle"; }

}  // namespace

bool is_program_text(const fs::directory_entry& entry) {
  static const std::set<std::string> kEndings = {".py", ".sh", ".yaml", ".yml", ".json", ".toml", ".ini", ".cfg"};
  std::error_code unknown;
  return kEndings.contains(entry.path().extension()) && entry.is_regular_file(unknown) &&
         entry.file_size(unknown) <= kLongestScript_bytes;
}

std::set<std::string> named_siblings(const fs::path& folder, const std::vector<std::string>& command) {
  std::set<std::string> names;
  for (const std::string& word : command) {
    add_named(word, names);
  }
  try {
    for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
      if (is_program_text(entry)) {
        add_named(read_file(entry.path()), names);
      }
    }
  } catch (const fs::filesystem_error&) {
    return names;  // as far as it could be read
  }
  std::erase_if(names, [&](const std::string& name) {
    std::error_code unknown;
    return name == folder.filename() || !fs::exists(folder.parent_path() / name, unknown);
  });
  return names;
}

std::vector<fs::path> places_of(const fs::path& folder, const std::vector<std::string>& command) {
  std::set<fs::path> places = {folder};
  const auto add_named_in = [&](std::string_view text) { add_absolute(text, places); };
  for (const std::string& word : command) {
    add_named_in(word);
  }
  for (char** entry = environ; *entry != nullptr; ++entry) {
    add_named_in(*entry);
  }
  std::error_code failure;
  for (fs::directory_iterator entry(folder, failure), end; !failure && entry != end; entry.increment(failure)) {
    std::error_code unknown;
    if (entry->is_symlink(unknown)) {
      places.insert(entry->path());
    } else if (is_program_text(*entry)) {
      add_named_in(try_read_file(entry->path()).value_or(""));
    }
  }
  return {places.begin(), places.end()};
}

std::optional<std::string> why_not_copied(const fs::path& folder, const std::vector<std::string>& command) {
  for (const std::string& word : command) {
    if (leaves_siblings(word)) {
      return fmt::format("{} leads far out of the working folder", word);
    }
  }
  std::uintmax_t bytes = 0;
  int files = 0;
  try {
    for (auto entry = fs::recursive_directory_iterator(folder); entry != fs::recursive_directory_iterator(); ++entry) {
      if (entry->is_directory() && !entry->is_symlink() && is_record(entry->path())) {
        entry.disable_recursion_pending();
      } else if (entry->is_symlink()) {
        if (const fs::path target = fs::read_symlink(entry->path()); target.is_relative() && leads_out(target)) {
          return fmt::format("the link {} leads out of its folder", entry->path().string());
        }
      } else if (entry->is_regular_file()) {
        bytes += entry->file_size();
      }
      if (++files > kMostFiles || bytes > kLargestCopy) {
        return "the working folder is too large to be copied for every trial";
      }
    }
  } catch (const fs::filesystem_error& failure) {
    return std::string("the working folder cannot be read as a whole: ") + failure.code().message();
  }
  return std::nullopt;
}

void copy_folder(const fs::path& from, const fs::path& to) {
  make_folders(to);
  try {
    for (const fs::directory_entry& entry : fs::directory_iterator(from)) {
      const fs::path target = to / entry.path().filename();
      if (entry.is_symlink()) {
        fs::copy_symlink(entry.path(), target);
      } else if (entry.is_directory()) {
        if (!is_record(entry.path())) {
          copy_folder(entry.path(), target);
        }
      } else if (entry.is_regular_file()) {
        fs::copy_file(entry.path(), target);
        fs::last_write_time(target, entry.last_write_time());  // programs compare modification times
      }
    }
  } catch (const fs::filesystem_error& failure) {
    throw Error(ErrorCode::kIo, from.string(), "cannot be copied for a trial: " + failure.code().message());
  }
}

fs::path copy_for_trial(const fs::path& from, const std::vector<std::string>& command, const fs::path& to) {
  const fs::path copy = to / (from.has_filename() ? from.filename() : fs::path("folder"));
  copy_folder(from, copy);
  for (const std::string& name : named_siblings(from, command)) {
    std::error_code failure;
    fs::create_symlink(from.parent_path() / name, to / name, failure);
    if (failure) {
      throw Error(ErrorCode::kIo, (to / name).string(), "cannot be made for a trial: " + failure.message());
    }
  }
  return copy;
}

}  // namespace unidle::experiment
