#include "unidle/knobs/detail/document.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <map>
#include <sstream>
#include <utility>

#include "unidle/base/error.h"
#include "unidle/knobs/detail/scan.h"

namespace unidle::knobs::detail {

namespace {

/// A file whose aliases expand beyond these numbers of values and collections, path bytes or levels is an attack or a
/// mistake, not a configuration.
constexpr std::size_t kMostNodes = 400'000;
constexpr std::size_t kMostPaths_bytes = 64 << 20;
constexpr int kDeepest = 200;
constexpr std::string_view kUtf8Bom = "\xef\xbb\xbf";

}  // namespace

/// Builds nodes from yaml-cpp's events.
class Builder : public YAML::EventHandler {
 public:
  Builder(Document& document, const std::string& text)
      : document_(document), text_(text), bom_(text.starts_with(kUtf8Bom) ? kUtf8Bom.size() : 0) {}

  void OnDocumentStart(const YAML::Mark& mark) override {
    anchors_.clear();
    // A stray closing bracket makes yaml-cpp report endless empty documents.
    if (mark.pos == last_start_) {
      throw YAML::ParserException(mark, "unexpected character");
    }
    last_start_ = mark.pos;
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    Node node = begin_node(Node::Kind::kNull, mark);
    static constexpr std::string_view kSpellings[] = {"~", "null", "Null", "NULL"};
    for (const std::string_view spelling : kSpellings) {
      // The mark of an absent value is at the next token, which may be a key called "null".
      if (text_.compare(node.begin, spelling.size(), spelling) == 0 && !is_key(node.begin + spelling.size())) {
        node.end = node.begin + spelling.size();
        node.value = spelling;
        node.editable = true;
        add(std::move(node), anchor);
        return;
      }
    }
    place_absent(node);
    add(std::move(node), anchor);
  }

  void OnScalar(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor, const std::string& value) override {
    Node node = begin_node(Node::Kind::kScalar, mark);
    node.value = value;
    const char first = node.begin < text_.size() ? text_[node.begin] : '\0';
    if (first == '"' || first == '\'') {
      node.quoted = true;
      node.editable = true;
      node.end = end_of_quoted(text_, node.begin);
    } else if ((first == '|' || first == '>') && text_.compare(node.begin, value.size(), value) != 0) {
      node.block = true;
      node.end = end_of_block_scalar(text_, node.begin);
    } else {
      // A plain scalar on one line is its own source; one over several lines is not.
      node.editable = text_.compare(node.begin, value.size(), value) == 0;
      node.end = node.editable ? node.begin + value.size() : end_of_folded(node.begin, value);
    }
    add(std::move(node), anchor);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    Node node = begin_node(Node::Kind::kAlias, mark);
    node.end = std::min(text_.find_first_of(" \t\r\n,]}", node.begin), text_.size());
    const auto found = anchors_.find(anchor);
    node.target = found == anchors_.end() ? -1 : found->second;
    add(std::move(node), 0);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(Node::Kind::kSequence, mark, anchor, '[');
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(Node::Kind::kMap, mark, anchor, '{');
  }
  void OnMapEnd() override { close(); }

 private:
  struct Frame {
    int node;
    int key = -1;
  };

  Node& at(int index) { return document_.nodes_[static_cast<std::size_t>(index)]; }

  Node begin_node(Node::Kind kind, const YAML::Mark& mark) const {
    Node node;
    node.kind = kind;
    node.begin = std::min(skip_properties(text_, static_cast<std::size_t>(mark.pos) + bom_), text_.size());
    node.end = node.begin;
    node.line = mark.line + 1;
    node.column = mark.column;
    return node;
  }

  bool is_key(std::size_t after) const {
    const std::size_t next = text_.find_first_not_of(" \t", after);
    return next != std::string::npos && text_[next] == ':';
  }

  /// An absent value is placed right after its key's colon.
  void place_absent(Node& node) {
    if (stack_.empty() || stack_.back().key < 0 || at(stack_.back().node).kind != Node::Kind::kMap) {
      node.end = node.begin;
      return;
    }
    const Node& key = at(stack_.back().key);
    const std::size_t colon = text_.find_first_not_of(" \t", key.end);
    node.line = key.line;
    node.editable = colon != std::string::npos && text_[colon] == ':';
    node.begin = node.end = node.editable ? colon + 1 : key.end;
  }

  /// End of a plain scalar over several lines: its words, in order, separated only by blanks.
  std::size_t end_of_folded(std::size_t begin, const std::string& value) const {
    std::size_t source = begin;
    for (const char c : value) {
      if (c == ' ' || c == '\n') {
        continue;
      }
      source = text_.find(c, source);
      if (source == std::string::npos) {
        return text_.size();
      }
      ++source;
    }
    return source;
  }

  void open(Node::Kind kind, const YAML::Mark& mark, YAML::anchor_t anchor, char bracket) {
    Node node = begin_node(kind, mark);
    if (node.begin < text_.size() && text_[node.begin] == bracket) {
      node.flow = true;
      const FlowEnd end = end_of_flow(text_, node.begin);
      node.end = std::min(end.close + 1, text_.size());
      node.content_end = end.content_end;
    }
    stack_.push_back({add(std::move(node), anchor), -1});
  }

  void close() {
    const int index = stack_.back().node;
    stack_.pop_back();
    Node& node = at(index);
    for (const Entry& entry : node.entries) {
      node.end = node.flow ? node.end : std::max(node.end, at(entry.value).end);
    }
    if (!node.entries.empty() && node.entries.front().key >= 0) {
      node.column = at(node.entries.front().key).column;
    }
  }

  int add(Node node, YAML::anchor_t anchor) {
    const int index = static_cast<int>(document_.nodes_.size());
    document_.nodes_.push_back(std::move(node));
    if (anchor != 0) {
      anchors_[anchor] = index;
    }
    if (stack_.empty()) {
      document_.roots_.push_back(index);
      return index;
    }
    Frame& frame = stack_.back();
    if (at(frame.node).kind == Node::Kind::kSequence) {
      at(frame.node).entries.push_back({-1, index});
    } else if (frame.key < 0) {
      frame.key = index;
    } else {
      at(frame.node).entries.push_back({frame.key, index});
      frame.key = -1;
    }
    return index;
  }

  Document& document_;
  const std::string& text_;
  std::size_t bom_;
  int last_start_ = -1;
  std::vector<Frame> stack_;
  std::map<YAML::anchor_t, int> anchors_;
};

Document Document::parse(const std::string& text, const std::string& name) {
  if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff")) {
    throw Error(ErrorCode::kInput, name, "is UTF-16", "save it as UTF-8");
  }
  Document document;
  document.name_ = name;
  std::istringstream stream(text);
  Builder builder(document, text);
  try {
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const YAML::Exception& failure) {
    const std::string subject = failure.mark.is_null() ? name : fmt::format("{}:{}", name, failure.mark.line + 1);
    throw Error(ErrorCode::kInput, subject, "is not valid YAML: " + failure.msg);
  } catch (const std::runtime_error& failure) {
    throw Error(ErrorCode::kInput, name, std::string("is not valid YAML: ") + failure.what());
  }
  return document;
}

namespace {

class Flattener {
 public:
  explicit Flattener(const Document& document, std::string name) : document_(document), name_(std::move(name)) {}

  void visit(int index, const std::string& path) {
    const Node& node = document_.node(index);
    const Level level(*this, node, path);
    switch (node.kind) {
      case Node::Kind::kAlias: visit_alias(node, path); break;
      case Node::Kind::kMap:
        for (const Entry& entry : node.entries) {
          const Node& key = document_.node(entry.key);
          const std::string name = key.kind == Node::Kind::kScalar ? key.value : "?";
          visit(entry.value, path.empty() ? name : path + "." + name);
        }
        break;
      case Node::Kind::kSequence:
        for (std::size_t i = 0; i < node.entries.size(); ++i) {
          visit(node.entries[i].value, fmt::format("{}[{}]", path, i));
        }
        break;
      default:
        scalars.push_back({path, node.value, alias_line_ > 0 ? alias_line_ : node.line, node.begin, node.end,
                           node.quoted, node.editable, inherited_, alias_begin_, alias_end_});
    }
  }

  std::vector<Scalar> scalars;

 private:
  /// Counts a node, and a level during its visit.
  class Level {
   public:
    Level(Flattener& flattener, const Node& node, const std::string& path) : depth_(flattener.depth_) {
      flattener.paths_bytes_ += path.size();
      if (++flattener.visited_ > kMostNodes || flattener.paths_bytes_ > kMostPaths_bytes) {
        throw Error(ErrorCode::kInput, flattener.name_, fmt::format("unfolds to more than {} values", kMostNodes));
      }
      if (depth_ == kDeepest) {
        throw Error(ErrorCode::kInput, fmt::format("{}:{}", flattener.name_, node.line),
                    fmt::format("is nested deeper than {} levels", kDeepest));
      }
      ++depth_;
    }
    ~Level() { --depth_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    int& depth_;
  };

  void visit_alias(const Node& node, const std::string& path) {
    if (node.target < 0) {
      return;
    }
    if (std::find(open_.begin(), open_.end(), node.target) != open_.end()) {
      throw Error(ErrorCode::kInput, fmt::format("{}:{}", name_, node.line), "an alias contains itself");
    }
    open_.push_back(node.target);
    const bool collection = !document_.node(node.target).entries.empty();
    const bool was_inherited = std::exchange(inherited_, inherited_ || collection);
    const int outer_line = std::exchange(alias_line_, collection ? alias_line_ : node.line);
    const std::size_t outer_begin = std::exchange(alias_begin_, collection || inherited_ ? 0 : node.begin);
    const std::size_t outer_end = std::exchange(alias_end_, collection || inherited_ ? 0 : node.end);
    visit(node.target, path);
    inherited_ = was_inherited;
    alias_line_ = outer_line;
    alias_begin_ = outer_begin;
    alias_end_ = outer_end;
    open_.pop_back();
  }

  const Document& document_;
  std::string name_;
  std::vector<int> open_;
  bool inherited_ = false;
  std::size_t visited_ = 0;
  std::size_t paths_bytes_ = 0;
  int depth_ = 0;
  // Position of the alias whose scalar is visited.
  int alias_line_ = 0;
  std::size_t alias_begin_ = 0;
  std::size_t alias_end_ = 0;
};

}  // namespace

std::vector<Scalar> Document::scalars() const {
  Flattener flattener(*this, name_);
  for (std::size_t i = 0; i < roots_.size(); ++i) {
    flattener.visit(roots_[i], i == 0 ? "" : fmt::format("document[{}]", i));
  }
  return std::move(flattener.scalars);
}

int Document::child(int map, std::string_view key) const {
  const Node* at = &node(map);
  while (at->kind == Node::Kind::kAlias && at->target >= 0) {
    at = &node(at->target);
  }
  int found = -1;
  for (const Entry& entry : at->entries) {
    if (entry.key >= 0 && node(entry.key).kind == Node::Kind::kScalar && node(entry.key).value == key) {
      found = entry.value;
    }
  }
  return found;
}

}  // namespace unidle::knobs::detail
