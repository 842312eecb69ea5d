#include "unidle/knobs/detail/insert.h"

#include <fmt/format.h>

#include <charconv>
#include <span>
#include <vector>

#include "unidle/base/error.h"
#include "unidle/knobs/detail/emit.h"
#include "unidle/knobs/detail/scan.h"

namespace unidle::knobs::detail {

std::vector<Segment> split_path(std::string_view path) {
  std::vector<Segment> segments;
  while (!path.empty()) {
    const std::size_t dot = path.find('.');
    std::string_view part = path.substr(0, dot);
    path = dot == std::string_view::npos ? std::string_view() : path.substr(dot + 1);
    const std::size_t bracket = part.find('[');
    Segment segment{std::string(part.substr(0, bracket)), {}};
    for (std::size_t at = bracket; at < part.size(); at = part.find('[', at + 1)) {
      std::size_t index = 0;
      std::from_chars(part.data() + at + 1, part.data() + part.size(), index);
      segment.indices.push_back(index);
    }
    segments.push_back(std::move(segment));
  }
  return segments;
}

std::string line_end_of(std::string_view text) {
  const std::size_t newline = text.find('\n');
  return newline != std::string_view::npos && newline > 0 && text[newline - 1] == '\r' ? "\r\n" : "\n";
}

std::string added_to_flow(const std::string& text, const FlowPlace& place, const std::string& entry) {
  std::string result = text;
  const bool trailing_comma = text[place.content_end - 1] == ',';
  const std::size_t line = line_begin(text, place.last_begin);
  const std::string indent = text.substr(line, place.last_begin - line);
  const bool own_line = line > place.open && indent.find_first_not_of(" \t") == std::string::npos;
  if (!own_line) {
    return result.insert(place.content_end, (trailing_comma ? " " : ", ") + entry);
  }
  // One entry per line: a comment after the last one stays with it.
  const std::size_t stop = line_end(text, place.content_end);
  const std::size_t next_line = stop < place.close ? stop : place.content_end;
  result.insert(next_line, line_end_of(text) + indent + entry + (trailing_comma ? "," : ""));
  return trailing_comma ? result : result.insert(place.content_end, ",");
}

namespace {

/// Where the path leaves the existing tree: the deepest mapping, or the empty value that must become one.
struct Place {
  int map = -1;          // the mapping to add to
  int empty = -1;        // or a null value below `map` that becomes a mapping
  std::size_t used = 0;  // number of path segments up to here
};

class Inserter {
 public:
  Inserter(const std::string& text, const Document& document, const std::string& name, std::string_view path,
           std::string_view value, bool json)
      : text_(text),
        document_(document),
        name_(name),
        path_(path),
        value_(value),
        segments_(split_path(path)),
        quote_(json ? '"' : '\0') {
    eol_ = line_end_of(text);
    step_ = indent_step();
  }

  std::string run() const {
    if (document_.roots().empty() || is_empty(document_.roots().front())) {
      const bool open_line = !text_.empty() && text_.back() != '\n';
      return text_ + (open_line ? eol_ : "") + block_lines(segments_, 0) + eol_;
    }
    const Place place = find_place();
    const auto rest = std::span(segments_).subspan(place.used);
    if (place.empty >= 0) {
      return into_empty(place, rest);
    }
    const Node& map = document_.node(place.map);
    return map.flow ? into_flow(map, rest) : into_block(map, rest);
  }

 private:
  bool is_empty(int index) const { return document_.node(index).kind == Node::Kind::kNull; }

  [[noreturn]] void refuse(const Node& node, const char* why) const {
    throw Error(ErrorCode::kInput, fmt::format("{}:{}: {}", name_, node.line, path_), why);
  }

  int step_into(int index, const Segment& segment) const {
    int child = document_.child(index, segment.key);
    for (const std::size_t i : segment.indices) {
      if (child < 0 || document_.node(child).kind != Node::Kind::kSequence ||
          i >= document_.node(child).entries.size()) {
        refuse(document_.node(index), "no such element");
      }
      child = document_.node(child).entries[i].value;
    }
    return child;
  }

  Place find_place() const {
    Place place;
    place.map = document_.roots().front();
    if (document_.node(place.map).kind != Node::Kind::kMap) {
      refuse(document_.node(place.map), "the file is not a mapping of keys to values");
    }
    for (; place.used + 1 < segments_.size(); ++place.used) {
      const int child = step_into(place.map, segments_[place.used]);
      if (child < 0) {
        return place;
      }
      const Node& node = document_.node(child);
      if (node.kind == Node::Kind::kNull) {
        place.empty = child;
        ++place.used;
        return place;
      }
      if (node.kind == Node::Kind::kAlias) {
        refuse(node, "is an alias, so a new key would change other places too");
      }
      if (node.kind != Node::Kind::kMap) {
        refuse(node, "cannot be added: its parent is not a mapping");
      }
      refuse_shared(child);
      place.map = child;
    }
    return place;
  }

  void refuse_shared(int index) const {
    for (const Node& node : document_.nodes()) {
      if (node.kind == Node::Kind::kAlias && node.target == index) {
        refuse(document_.node(index), "cannot be added: its parent is used elsewhere through an anchor");
      }
    }
  }

  /// The file's indentation: that of the first block mapping inside another.
  std::size_t indent_step() const {
    for (const Node& outer : document_.nodes()) {
      if (outer.kind != Node::Kind::kMap || outer.flow) {
        continue;
      }
      for (const Entry& entry : outer.entries) {
        const Node& inner = document_.node(entry.value);
        if (inner.kind == Node::Kind::kMap && !inner.flow && inner.column > outer.column) {
          return static_cast<std::size_t>(inner.column - outer.column);
        }
      }
    }
    return 2;
  }

  std::string flow_entry(std::span<const Segment> rest, char quote) const {
    const std::string key = quote == 0 ? rest.front().key : written(rest.front().key, quote, true);
    if (rest.size() > 1) {
      return key + ": {" + flow_entry(rest.subspan(1), quote) + "}";
    }
    const bool plain = quote == 0 || is_json_literal(value_);
    return key + ": " + written(value_, plain ? '\0' : quote, true);
  }

  std::string block_lines(std::span<const Segment> rest, std::size_t indent) const {
    const std::string head = std::string(indent, ' ') + rest.front().key + ":";
    if (rest.size() == 1) {
      return head + " " + written(value_, 0, false);
    }
    return head + eol_ + block_lines(rest.subspan(1), indent + step_);
  }

  /// Whether groups are written as {a: 1, b: 2}; a new group then is too.
  bool prefers_flow(const Node& map) const {
    int flow = 0;
    int block = 0;
    for (const Entry& entry : map.entries) {
      const Node& node = document_.node(entry.value);
      if (node.kind == Node::Kind::kMap) {
        (node.flow ? flow : block) += 1;
      }
    }
    return flow > block;
  }

  std::string after_line(std::size_t at, const std::string& lines) const {
    std::string result = text_;
    return result.insert(line_end(text_, at), eol_ + lines);
  }

  std::string into_block(const Node& map, std::span<const Segment> rest) const {
    const auto indent = static_cast<std::size_t>(map.column);
    if (rest.size() > 1 && prefers_flow(map)) {
      return after_line(map.end, std::string(indent, ' ') + flow_entry(rest, quote_));
    }
    return after_line(map.end, block_lines(rest, indent));
  }

  std::string into_empty(const Place& place, std::span<const Segment> rest) const {
    const Node& parent = document_.node(place.map);
    const Node& empty = document_.node(place.empty);
    if (!empty.editable) {
      refuse(empty, "cannot be added: its parent is not a mapping");
    }
    std::string result = text_;
    if (empty.begin < empty.end) {
      return result.replace(empty.begin, empty.end - empty.begin, "{" + flow_entry(rest, quote_) + "}");
    }
    if (parent.flow) {
      return result.insert(empty.begin, " {" + flow_entry(rest, quote_) + "}");
    }
    return after_line(empty.begin, block_lines(rest, static_cast<std::size_t>(parent.column) + step_));
  }

  std::string into_flow(const Node& map, std::span<const Segment> rest) const {
    std::string result = text_;
    if (text_[map.begin] != '{') {
      refuse(map, "cannot be added: its parent is a pair inside a list");
    }
    if (map.entries.empty()) {
      return result.insert(map.begin + 1, flow_entry(rest, quote_));
    }
    const Node& key = document_.node(map.entries.back().key);
    const std::string entry = flow_entry(rest, key.quoted ? text_[key.begin] : quote_);
    return added_to_flow(text_, {map.begin, key.begin, map.content_end, map.end - 1}, entry);
  }

  const std::string& text_;
  const Document& document_;
  const std::string& name_;
  std::string_view path_;
  std::string_view value_;
  std::vector<Segment> segments_;
  std::string eol_;
  char quote_;
  std::size_t step_ = 2;
};

}  // namespace

std::string inserted(const std::string& text, const Document& document, const std::string& name, std::string_view path,
                     std::string_view value, bool json) {
  return Inserter(text, document, name, path, value, json).run();
}

}  // namespace unidle::knobs::detail
