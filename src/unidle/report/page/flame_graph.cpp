#include "unidle/report/page/flame_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <span>
#include <utility>

#include "unidle/base/units.h"
#include "unidle/record/note_types.h"

namespace unidle::report {

namespace {

constexpr double kLeastDrawn = 0.005;                       // of all looks; less is not drawn
constexpr std::int64_t kFewestDrawn = 20;                   // fewer say little about stacks
constexpr std::size_t kLongestName = 300;                   // bytes
constexpr std::size_t kDeepest = 64;                        // frames, in a record of any origin
constexpr std::int64_t kMostLooks = std::int64_t{1} << 40;  // sums of damaged records stay whole numbers

using StacksNote = record::NoteOf<record::NoteType::kStacks>;
using Frame = std::pair<std::string, std::string>;  // function, where

struct Stack {
  std::vector<Frame> path;  // the phase first
  std::int64_t looks = 0;
};

Frame frame_in(const nlohmann::json& frames, const nlohmann::json& number) {
  if (!number.is_number_unsigned() || number.get<std::uint64_t>() >= frames.size()) {
    return {};
  }
  const nlohmann::json& frame = frames[number.get<std::size_t>()];
  const bool whole = frame.is_array() && frame.size() == 2 && frame[0].is_string();
  if (!whole) {
    return {};
  }
  const std::string where = frame[1].is_string() ? frame[1].get<std::string>() : "";
  return {frame[0].get<std::string>().substr(0, kLongestName), where.substr(0, kLongestName)};
}

void add_stacks(const StacksNote& note, std::vector<Stack>& stacks) {
  const nlohmann::json frames = note.value("frames");
  for (const nlohmann::json& one : note.value("stacks")) {
    const bool whole = one.is_array() && one.size() == 3 && one[0].is_string() && one[1].is_number_integer() &&
                       one[2].is_array() && frames.is_array();
    const std::int64_t looks = whole ? one[1].get<std::int64_t>() : 0;
    if (looks <= 0 || looks > kMostLooks) {
      continue;
    }
    Stack stack{{{one[0].get<std::string>(), ""}}, looks};
    for (std::size_t i = 0; i < std::min(kDeepest, one[2].size()); ++i) {
      if (Frame frame = frame_in(frames, one[2][i]); !frame.first.empty()) {
        stack.path.push_back(std::move(frame));
      }
    }
    stacks.push_back(std::move(stack));
  }
}

/// Adds to `node` what its frame called. REQUIRES: `stacks` are sorted by path and agree in the first `depth` frames.
void add_calls(FlameNode& node, std::span<const Stack> stacks, std::size_t depth) {
  for (std::size_t begin = 0; begin < stacks.size();) {
    const std::vector<Frame>& path = stacks[begin].path;
    std::size_t end = begin + 1;
    if (path.size() > depth) {
      while (end < stacks.size() && stacks[end].path.size() > depth && stacks[end].path[depth] == path[depth]) {
        ++end;
      }
      FlameNode& child = node.children.emplace_back(FlameNode{path[depth].first, path[depth].second, 0, {}});
      for (const Stack& stack : stacks.subspan(begin, end - begin)) {
        child.looks += stack.looks;
      }
      add_calls(child, stacks.subspan(begin, end - begin), depth + 1);
    }
    begin = end;
  }
  std::ranges::stable_sort(node.children, std::ranges::greater(), &FlameNode::looks);
}

std::string_view phase_colour(std::string_view phase) {
  static const std::map<std::string_view, std::string_view> kColours = {
      {"startup", "startup"}, {"input", "input"},           {"train", "compute"},
      {"exchange", "sync"},   {"checkpoint", "checkpoint"}, {"validate", "validate"}};
  const auto found = kColours.find(phase);
  return found == kColours.end() ? "other" : found->second;
}

std::string phase_words(const std::string& phase, const Translator& translator) {
  const std::map<std::string_view, std::string> words = {
      {"startup", translator.word("start-up")},
      {"input", translator.word("input")},
      {"train", translator.say("model and optimizer")},
      {"between", translator.say("rest of the step")},
      {"exchange", translator.say("exchange with other ranks")},
      {"logging", translator.word("logging")},
      {"checkpoint", translator.word("checkpoint")},
      {"validate", translator.word("validation")},
      {"after", translator.say("after the last step")},
  };
  const auto found = words.find(phase);
  return found == words.end() ? phase : found->second;
}

double share_of(std::int64_t looks, std::int64_t all) { return static_cast<double>(looks) / static_cast<double>(all); }

/// The nodes that `parent` called, in a graph of so many looks.
Html calls_html(const FlameNode& parent, bool of_root, std::int64_t whole, const Translator& translator) {
  Html calls;
  for (const FlameNode& node : parent.children) {
    if (share_of(node.looks, whole) < kLeastDrawn) {
      break;  // the rest are no more expensive
    }
    const std::string name = of_root ? phase_words(node.function, translator) : node.function;
    const std::string where = node.where.empty() ? "" : " " + node.where;
    Element item("li");
    if (of_root) {
      item.add(attribute("class", std::string(phase_colour(node.function))));
    }
    item.add(width_of(share_of(node.looks, parent.looks)));
    const std::string share = format_share(share_of(node.looks, whole));
    item.add(element("span", attribute("title", name + where + ": " + share), text(name),
                     where.empty() ? Html() : element("code", where), element("small", share)));
    item.add(calls_html(node, false, whole, translator));
    calls += item.finish();
  }
  return calls.empty() ? calls : element("ul", calls);
}

Html graph_html(const FlameNode& root, std::string_view title, const Translator& translator) {
  return element("div.hot", element("h3", title),
                 element("p.quiet", translator.say("{} stack samples; below each line is what it called", root.looks)),
                 element("div.flame", calls_html(root, true, root.looks, translator)));
}

}  // namespace

FlameNode flame_of(const account::RunData& run, std::string_view role) {
  std::map<std::int64_t, const record::Note*> newest;  // by process: notes count up
  for (const record::Note& note : run.notes) {
    if (record::is_of(note, record::NoteType::kStacks) && StacksNote(note).text("role") == role) {
      newest[note.process] = &note;
    }
  }
  std::vector<Stack> stacks;
  for (const auto& [process, note] : newest) {
    add_stacks(StacksNote(*note), stacks);
  }
  std::ranges::stable_sort(stacks, {}, &Stack::path);
  FlameNode root;
  for (const Stack& stack : stacks) {
    root.looks += stack.looks;
  }
  add_calls(root, stacks, 0);
  return root;
}

Html flame_graphs_html(const account::RunData& run, const Translator& translator) {
  Html out;
  const auto add = [&](std::string_view role, std::string_view title) {
    const FlameNode root = flame_of(run, role);
    out += root.looks < kFewestDrawn ? Html() : graph_html(root, title, translator);
  };
  add("train", translator.say("Flame graph of the training process"));
  add("worker", translator.say("Flame graph of the loader's workers"));
  return out;
}

}  // namespace unidle::report
