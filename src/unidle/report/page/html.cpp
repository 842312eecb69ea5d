#include "unidle/report/page/html.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "unidle/base/characters.h"
#include "unidle/base/printable.h"

namespace unidle::report {

namespace {

constexpr std::array<std::string_view, 10> kProse = {"h1",    "h2", "h3",         "h4", "p",
                                                     "small", "li", "figcaption", "th", "td"};
constexpr std::array<std::string_view, 12> kUnitNames = {" %",   " ms",  " us",  " s", " min",       " h",
                                                         " KiB", " MiB", " GiB", " W", " samples/s", " \u500d"};

/// Short words never break; long ones may break anywhere, so that no table is wider than a phone.
std::string_view fit(std::string_view words, std::string_view tag, std::string_view short_tag) {
  constexpr std::size_t kShort = 14;
  return words.size() <= kShort ? short_tag : tag;
}

double percent(double share) { return std::isfinite(share) ? std::clamp(share, 0.0, 1.0) * 100 : 0; }

}  // namespace

std::string escape(std::string_view text) {
  std::string out;
  for (const char c : printable(text)) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\'': out += "&#39;"; break;
      case '\r': break;
      default: out += c;
    }
  }
  return out;
}

Html text(std::string_view words) { return {escape(words)}; }

Html prose(std::string_view words) {
  std::string out = escape(words);
  for (const std::string_view unit : kUnitNames) {
    for (std::size_t at = out.find(unit); at != std::string::npos; at = out.find(unit, at + 1)) {
      const std::size_t after = at + unit.size();
      const bool whole = after == out.size() || (!is_letter(out[after]) && !is_digit(out[after]));
      if (at > 0 && is_digit(out[at - 1]) && whole) {
        out.replace(at, 1, "\u00a0");
      }
    }
  }
  return {out};
}

Element::Element(std::string_view name) : tag_(name.substr(0, name.find('.'))) {
  opening_ = fmt::format("<{}", tag_);
  if (tag_.size() < name.size()) {
    std::string classes(name.substr(tag_.size() + 1));
    std::replace(classes.begin(), classes.end(), '.', ' ');
    opening_ += fmt::format(" class=\"{}\"", classes);
  }
}

void Element::add(std::string_view words) {
  content_ += std::ranges::find(kProse, tag_) == kProse.end() ? escape(words) : prose(words).markup;
}

void Element::add(const Attribute& attribute) {
  opening_ += fmt::format(" {}=\"{}\"", attribute.name, escape(attribute.value));
}

Html Element::finish() const { return {fmt::format("{}>{}</{}>", opening_, content_, tag_)}; }

Html section(std::string_view title, const Html& body) {
  return body.empty() ? Html() : element("section", element("h2", title), body) + Html{"\n"};
}

Html table(std::string_view caption, const std::vector<std::string>& header,
           const std::vector<std::vector<std::string>>& rows) {
  if (rows.empty()) {
    return {};
  }
  Html head;
  for (const std::string& words : header) {
    head += words.empty() ? element("td") : element(fit(words, "th", "th.short"), attribute("scope", "col"), words);
  }
  Html body;
  for (const auto& row : rows) {
    Html line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      line +=
          i == 0 ? element("th", attribute("scope", "row"), row[i]) : element(fit(row[i], "td", "td.short"), row[i]);
    }
    body += element("tr", line);
  }
  const Html top = head.empty() ? Html() : element("thead", element("tr", head));
  return element("div.scroll", element("table", element("caption", caption), top, element("tbody", body)));
}

Html list(std::string_view name, const std::vector<Html>& items) {
  Html inside;
  for (const Html& item : items) {
    inside += element("li", item);
  }
  return items.empty() ? Html() : element(name, inside);
}

Attribute width_of(double share) { return attribute("style", fmt::format("width:{:.2f}%", percent(share))); }

Attribute left_of(double share) { return attribute("style", fmt::format("left:{:.2f}%", percent(share))); }

Attribute place_of(double from, double to) {
  const double left = percent(from);
  return attribute("style", fmt::format("left:{:.2f}%;width:{:.2f}%", left, std::max(0.0, percent(to) - left)));
}

}  // namespace unidle::report
