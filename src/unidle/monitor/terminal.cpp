#include "unidle/monitor/terminal.h"

#include <langinfo.h>
#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "unidle/base/terminal.h"

// ncurses comes last: it defines short macros.
#define NCURSES_NOMACROS 1
#include <curses.h>

namespace unidle::monitor {

struct LiveTerminal::Impl {
  SCREEN* screen = nullptr;
  bool colours = false;
};

const int LiveTerminal::kResized = KEY_RESIZE;

namespace {

enum Pair : short { kPairGood = 1, kPairMiddling, kPairBad };

int attributes(Style style, bool colours) {
  switch (style) {
    case Style::kPlain: return 0;
    case Style::kBold: return static_cast<int>(A_BOLD);
    case Style::kDim: return static_cast<int>(A_DIM);
    case Style::kGood: return colours ? static_cast<int>(COLOR_PAIR(kPairGood)) : 0;
    case Style::kMiddling: return colours ? static_cast<int>(COLOR_PAIR(kPairMiddling)) : 0;
    case Style::kBad: return colours ? static_cast<int>(COLOR_PAIR(kPairBad)) : static_cast<int>(A_BOLD);
  }
  return 0;
}

}  // namespace

std::unique_ptr<LiveTerminal> LiveTerminal::open() {
  const char* term = std::getenv("TERM");
  if (term == nullptr || *term == '\0' || std::strcmp(term, "dumb") == 0) {
    return nullptr;
  }
  std::setlocale(LC_CTYPE, "");  // LC_CTYPE only: numbers keep their format
  std::unique_ptr<LiveTerminal> terminal(new LiveTerminal);
  terminal->impl_ = std::make_unique<Impl>();
  terminal->impl_->screen = ::newterm(nullptr, stdout, stdin);  // initscr() would end the program
  if (terminal->impl_->screen == nullptr) {
    return nullptr;
  }
  terminal->unicode_ = std::strcmp(::nl_langinfo(CODESET), "UTF-8") == 0;
  ::cbreak();
  ::noecho();
  ::noqiflush();  // else Ctrl-C may throw away what is written after it: the summary
  ::nodelay(stdscr, TRUE);
  ::keypad(stdscr, TRUE);
  ::curs_set(0);
  if (use_colour(stdout) && ::has_colors() && ::start_color() == OK) {
    ::use_default_colors();
    ::init_pair(kPairGood, COLOR_GREEN, -1);
    ::init_pair(kPairMiddling, COLOR_YELLOW, -1);
    ::init_pair(kPairBad, COLOR_RED, -1);
    terminal->impl_->colours = true;
  }
  return terminal;
}

LiveTerminal::~LiveTerminal() {
  if (impl_ && impl_->screen != nullptr) {
    ::endwin();
    ::delscreen(impl_->screen);
  }
}

int LiveTerminal::rows() const { return ::getmaxy(stdscr); }
int LiveTerminal::columns() const { return ::getmaxx(stdscr); }

void LiveTerminal::draw(const std::vector<ScreenLine>& lines) {
  ::werase(stdscr);
  int y = 0;
  for (const ScreenLine& line : lines) {
    ::wmove(stdscr, y++, 0);
    for (const Span& span : line) {
      const int style = attributes(span.style, impl_->colours);
      ::wattr_on(stdscr, static_cast<attr_t>(style), nullptr);
      ::waddnstr(stdscr, span.text.c_str(), static_cast<int>(span.text.size()));
      ::wattr_off(stdscr, static_cast<attr_t>(style), nullptr);
    }
  }
  ::wrefresh(stdscr);
}

std::optional<int> LiveTerminal::key() {
  const int key = ::wgetch(stdscr);
  if (key == KEY_RESIZE) {
    ::clearok(stdscr, TRUE);  // the terminal's contents are unknown now
  }
  return key == ERR ? std::nullopt : std::optional(key);
}

}  // namespace unidle::monitor
