// Markup that its type keeps escaped: text becomes Html only through text() and element().
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace unidle::report {

/// Makes any bytes safe inside HTML text and quoted attributes: escapes markup, drops control characters, and replaces
/// invalid UTF-8 with U+FFFD.
std::string escape(std::string_view text);

struct Html {
  std::string markup;

  bool empty() const { return markup.empty(); }
  Html& operator+=(const Html& more) {
    markup += more.markup;
    return *this;
  }
};
inline Html operator+(Html a, const Html& b) { return a += b; }

Html text(std::string_view words);
/// Text in which numbers stay on the line of their unit. Not for code, which readers copy.
Html prose(std::string_view words);

struct Attribute {
  std::string_view name;
  std::string value;
};
inline Attribute attribute(std::string_view name, std::string value) { return {name, std::move(value)}; }

/// An element under construction. `name`: the tag, with classes after dots ("p.answer"), which are trusted.
class Element {
 public:
  explicit Element(std::string_view name);
  void add(const Attribute& attribute);
  void add(const Html& content) { content_ += content.markup; }
  void add(std::string_view words);
  Html finish() const;

 private:
  std::string_view tag_;
  std::string opening_;
  std::string content_;
};

/// element("p.answer", attribute("id", id), "escaped words", html). Words in headings, paragraphs, items and cells are
/// prose.
template <typename... Parts>
Html element(std::string_view name, const Parts&... parts) {
  Element made(name);
  (made.add(parts), ...);
  return made.finish();
}

/// A section with its heading; nothing around an empty body.
Html section(std::string_view title, const Html& body);

/// A table with a header row and row headers; the caption is for screen readers only. Nothing without rows.
Html table(std::string_view caption, const std::vector<std::string>& header,
           const std::vector<std::vector<std::string>>& rows);

/// A list of items with the given class; nothing without items.
Html list(std::string_view name, const std::vector<Html>& items);

/// "width:12.34%", for bars. `share` is limited to 0..1.
Attribute width_of(double share);
/// "left:12.34%"
Attribute left_of(double share);
/// Both.
Attribute place_of(double from, double to);

}  // namespace unidle::report
