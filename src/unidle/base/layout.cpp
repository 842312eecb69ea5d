#include "unidle/base/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "unidle/base/printable.h"
#include "unidle/base/units.h"

namespace unidle {

namespace {

/// The first code point and its length in bytes; an invalid byte counts as one code point.
std::pair<std::uint32_t, std::size_t> code_point(std::string_view text) {
  const auto byte = [&](std::size_t at) { return static_cast<std::uint32_t>(static_cast<unsigned char>(text[at])); };
  const std::uint32_t first = byte(0);
  const std::size_t size = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : first >= 0xC0 ? 2 : 1;
  if (size == 1 || text.size() < size) {
    return {first, 1};
  }
  std::uint32_t value = first & (0xFFU >> (size + 1));
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xC0U) != 0x80U) {
      return {first, 1};
    }
    value = value << 6U | (byte(i) & 0x3FU);
  }
  return {value, size};
}

/// True for characters in the blocks of East Asian Wide and Fullwidth characters (Unicode Standard Annex 11).
bool is_wide(std::uint32_t c) {
  static constexpr std::array<std::pair<std::uint32_t, std::uint32_t>, 8> kWide = {{{0x1100, 0x115F},
                                                                                    {0x2E80, 0xA4CF},
                                                                                    {0xAC00, 0xD7A3},
                                                                                    {0xF900, 0xFAFF},
                                                                                    {0xFE30, 0xFE6F},
                                                                                    {0xFF01, 0xFF60},
                                                                                    {0xFFE0, 0xFFE6},
                                                                                    {0x1F300, 0x3FFFD}}};
  return std::any_of(kWide.begin(), kWide.end(),
                     [&](const auto& range) { return c >= range.first && c <= range.second; });
}

/// True for punctuation that stays with the character before it.
bool closes(std::uint32_t c) {
  static constexpr std::array<std::uint32_t, 11> kClosing = {0x3001, 0x3002, 0xFF0C, 0xFF1A, 0xFF1B, 0xFF09,
                                                             0xFF01, 0xFF1F, 0x300D, 0x300F, 0x201D};
  return std::find(kClosing.begin(), kClosing.end(), c) != kClosing.end();
}

/// Text without a line break, and whether a blank precedes it.
struct Piece {
  std::string text;
  int width = 0;
  bool blank_before = false;
};

/// True for a unit after a number, ignoring punctuation, as in "40 %,".
bool is_unit(std::string_view text) {
  static constexpr std::array<std::string_view, 28> kUnits = {
      "%",  "s",   "ms",  "us",  "ns",  "min", "h",  "d", "B",   "kB",  "KB",        "MB",       "GB",      "TB",
      "PB", "KiB", "MiB", "GiB", "TiB", "W",   "kW", "J", "MHz", "GHz", "samples/s", "tokens/s", "steps/s", "rows/s"};
  while (!text.empty() && std::string_view(",.;:!?)]").find(text.back()) != std::string_view::npos) {
    text.remove_suffix(1);
  }
  for (const std::string_view wide : {"，", "。", "；", "：", "！", "？", "）", "、"}) {
    text = text.substr(0, text.find(wide));
  }
  return std::find(kUnits.begin(), kUnits.end(),
                   text.substr(0, text.ends_with("B/s") ? text.size() - 2 : text.size())) != kUnits.end();
}

bool ends_in_digit(std::string_view text) { return !text.empty() && text.back() >= '0' && text.back() <= '9'; }

/// Joins units to the number before them.
std::vector<Piece> with_units_joined(std::vector<Piece> pieces) {
  std::vector<Piece> joined;
  for (Piece& piece : pieces) {
    if (!joined.empty() && piece.blank_before && ends_in_digit(joined.back().text) && is_unit(piece.text)) {
      joined.back().text += " " + piece.text;
      joined.back().width += 1 + piece.width;
    } else {
      joined.push_back(std::move(piece));
    }
  }
  return joined;
}

std::vector<Piece> pieces_of(std::string_view text) {
  std::vector<Piece> pieces;
  bool blank = false;
  bool joins = false;  // the next character belongs to the last piece
  while (!text.empty()) {
    const auto [c, size] = code_point(text);
    if (c == ' ' || c == '\n' || c == '\t' || c == '\r') {
      blank = true;
      joins = false;
    } else {
      const bool wide = is_wide(c);
      if (pieces.empty() || blank || (!closes(c) && (wide || !joins))) {
        pieces.push_back({"", 0, blank && !pieces.empty()});
      }
      pieces.back().text += text.substr(0, size);
      pieces.back().width += wide ? 2 : 1;
      blank = false;
      joins = !wide;
    }
    text.remove_prefix(size);
  }
  return with_units_joined(std::move(pieces));
}

/// Splits a piece that is too wide for one line over several; returns the columns used in the last.
int split_over_lines(const Piece& piece, int width, std::string& out) {
  std::string_view rest = piece.text;
  int column = 0;
  while (!rest.empty()) {
    const auto [c, size] = code_point(rest);
    const int columns = is_wide(c) ? 2 : 1;
    if (column + columns > width) {
      out += '\n';
      column = 0;
    }
    out += rest.substr(0, size);
    column += columns;
    rest.remove_prefix(size);
  }
  return column;
}

/// The words of a shell's command, with their quotes; an option with its value is one, if that has at most `width`
/// columns.
std::vector<std::string_view> words_of_command(std::string_view command, int width) {
  std::vector<std::string_view> words;
  const auto add = [&](std::size_t begin, std::size_t end) {
    const std::string_view word = command.substr(begin, end - begin);
    const bool is_value = !words.empty() && words.back().starts_with('-') && words.back() != "--" &&
                          words.back().find(' ') == std::string_view::npos && !word.starts_with('-');
    const auto from = words.empty() ? 0 : static_cast<std::size_t>(words.back().data() - command.data());
    if (is_value && display_width(command.substr(from, end - from)) <= width) {
      words.back() = command.substr(from, end - from);
    } else if (!word.empty()) {
      words.push_back(word);
    }
  };
  std::size_t begin = 0;
  char quote = 0;
  for (std::size_t at = 0; at < command.size(); ++at) {
    const char c = command[at];
    if (quote != 0) {
      quote = c == quote ? 0 : quote;
    } else if (c == '\'' || c == '"') {
      quote = c;
    } else if (c == '\\') {
      ++at;
    } else if (c == ' ') {
      add(begin, at);
      begin = at + 1;
    }
  }
  add(begin, command.size());
  return words;
}

constexpr int kBarColumns = 24;
constexpr int kLeastBarColumns = 4;

/// A bar for `share` in at most `columns`; empty if they are too few.
std::string bar(double share, int columns) {
  const int width = std::min(kBarColumns, columns - static_cast<int>(std::string_view(" []").size()));
  const int filled = static_cast<int>(share * width);
  return width < kLeastBarColumns ? "" : fmt::format(" [{:#<{}}{:.<{}}]", "", filled, "", width - filled);
}

}  // namespace

int display_width(std::string_view text) {
  int width = 0;
  while (!text.empty()) {
    const auto [c, size] = code_point(text);
    width += is_wide(c) ? 2 : 1;
    text.remove_prefix(size);
  }
  return width;
}

std::string_view prefix_of_width(std::string_view text, int width) {
  std::size_t end = 0;
  while (end < text.size()) {
    const auto [c, size] = code_point(text.substr(end));
    width -= is_wide(c) ? 2 : 1;
    if (width < 0) {
      break;
    }
    end += size;
  }
  return text.substr(0, end);
}

std::string fill(std::string_view text, int width) {
  std::string out;
  int column = 0;
  for (const Piece& piece : pieces_of(text)) {
    const int blank = piece.blank_before && column > 0 ? 1 : 0;
    if (column > 0 && column + blank + piece.width > width) {
      out += '\n';
      column = 0;
    } else if (blank == 1) {
      out += ' ';
      ++column;
    }
    if (piece.width > width) {
      column = split_over_lines(piece, width, out);
    } else {
      out += piece.text;
      column += piece.width;
    }
  }
  return out;
}

std::string block(std::string_view text, int width, int indent, std::string_view mark) {
  const int inner = indent + display_width(mark);
  std::string body = fill(text, std::max(2, width - inner));
  const std::string pad(static_cast<std::size_t>(inner), ' ');
  for (std::size_t at = 0; (at = body.find('\n', at)) != std::string::npos; at += pad.size() + 1) {
    body.insert(at + 1, pad);
  }
  return std::string(static_cast<std::size_t>(indent), ' ') + std::string(mark) + body + "\n";
}

std::string command_block(std::string_view command, int width, int indent, std::string_view mark) {
  constexpr std::string_view kGoesOn = " \\";
  const int inner = indent + display_width(mark);
  const int columns = width - inner - display_width(kGoesOn);
  const std::string pad(static_cast<std::size_t>(inner), ' ');
  std::string out = std::string(static_cast<std::size_t>(indent), ' ') + std::string(mark);
  int column = 0;
  for (const std::string_view word : words_of_command(command, columns)) {
    const int needed = display_width(word);
    if (column > 0 && column + 1 + needed > columns) {
      out.append(kGoesOn).append("\n").append(pad);
      column = 0;
    } else if (column > 0) {
      out += ' ';
      ++column;
    }
    out += word;
    column += needed;
  }
  return out + "\n";
}

std::string progress_line(std::string_view label, std::uint64_t done, std::uint64_t total, std::string_view note,
                          double elapsed_s, int columns) {
  const double share = total > 0 ? static_cast<double>(done) / static_cast<double>(total) : 0;
  std::string words = fmt::format(" {}/{} {}", done, total, note);
  if (done > 0 && done < total) {
    words += fmt::format(" ETA {}", format_seconds(elapsed_s * (1 / share - 1)));
  }
  words = printable_line(words);
  // In a narrow line the bar shrinks first: the words say more.
  const std::string line =
      std::string(label) + bar(share, columns - display_width(label) - display_width(words)) + words;
  return std::string(prefix_of_width(line, columns));
}

}  // namespace unidle
