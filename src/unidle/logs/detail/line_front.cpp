#include "unidle/logs/detail/line_front.h"

#include <algorithm>
#include <array>

#include "unidle/base/characters.h"
#include "unidle/logs/detail/numbers.h"

namespace unidle::logs::detail {

namespace {

constexpr int kMostParts = 12;
constexpr std::size_t kLongestBracket = 100;

struct LevelName {
  std::string_view name;
  Level level;
};
constexpr std::array kLevels = {
    LevelName{"ERROR", Level::kError},        LevelName{"CRITICAL", Level::kError},
    LevelName{"FATAL", Level::kError},        LevelName{"SEVERE", Level::kError},
    LevelName{"WARNING", Level::kBelowError}, LevelName{"WARN", Level::kBelowError},
    LevelName{"INFO", Level::kBelowError},    LevelName{"DEBUG", Level::kBelowError},
    LevelName{"TRACE", Level::kBelowError},   LevelName{"NOTICE", Level::kBelowError},
};

bool is_in_name(char c) { return is_letter(c) || is_digit(c) || c == '_' || c == '.' || c == '-'; }

/// Consumes a level at the front of `text`; it must be a whole word.
std::optional<Level> take_level(std::string_view& text) {
  for (const LevelName& one : kLevels) {
    if (text.starts_with(one.name) && (text.size() == one.name.size() || !is_word(text[one.name.size()]))) {
      text.remove_prefix(one.name.size());
      return one.level;
    }
  }
  return std::nullopt;
}

/// The level letter of glog and torch: "E0305", "W20240305".
std::optional<Level> level_of_letter(std::string_view text) {
  if (text.size() < 4 || !std::all_of(text.begin() + 1, text.begin() + 4, is_digit)) {
    return std::nullopt;
  }
  switch (text.front()) {
    case 'E':
    case 'F': return Level::kError;
    case 'W':
    case 'I': return Level::kBelowError;
    default: return std::nullopt;
  }
}

class Front {
 public:
  explicit Front(std::string_view line) : said_{trimmed(line), Level::kNone, std::nullopt} {}

  LogMessage strip() {
    for (int part = 0; part < kMostParts && !said_.text.empty(); ++part) {
      if (!(separator() || rank() || bracket() || parenthesis() || glog() || level() || time() || syslog() ||
            place_in_code() || logger() || picture())) {
        break;
      }
      said_.text = trimmed(said_.text);
    }
    return said_;
  }

 private:
  void pass(std::size_t bytes) { said_.text.remove_prefix(std::min(bytes, said_.text.size())); }

  bool separator() {
    for (const std::string_view sign : {"|", "- ", ": ", "> ", "::", "— "}) {
      if (said_.text.starts_with(sign)) {
        pass(sign.size());
        return true;
      }
    }
    return false;
  }

  /// "[rank1]:", "[default0]:", "[0]<stderr>:", "[1,3]<stdout>:", "[Rank 1]", "3: " of srun -l.
  bool rank() {
    std::string_view text = said_.text;
    const bool bracketed = text.front() == '[';
    text.remove_prefix(bracketed ? 1 : 0);
    const bool named = take(text, "rank") || take(text, "Rank ") || take(text, "RANK ") || take(text, "default");
    if (const auto job = text.find(','); bracketed && !named && job == 1 && is_digit(text.front())) {
      text.remove_prefix(2);
    }
    const auto number = take_digits(text);
    if (!number || *number > 1'000'000 || (bracketed && !take(text, "]"))) {
      return false;
    }
    const bool stream = take(text, "<stderr>") || take(text, "<stdout>");
    const bool colon = take(text, ":");
    const bool by_srun = !bracketed && !named && colon && text.starts_with(' ');
    if (!(bracketed && (named || stream)) && !(named && colon) && !by_srun) {
      return false;
    }
    said_.rank = static_cast<int>(*number);
    said_.text = text;
    return true;
  }

  /// "[2024-03-05 10:04:20,123]", "[ERROR]", "[launch.py:434:handler]", "[E305 10:33:21.512 a.cpp:616]", "[ 514.68]".
  bool bracket() {
    if (said_.text.front() != '[') {
      return false;
    }
    const std::size_t end = said_.text.find(']');
    if (end > kLongestBracket) {  // also for npos
      return false;
    }
    std::string_view inside = trimmed(said_.text.substr(1, end - 1));
    std::optional<Level> level = take_level(inside);
    if (!level) {
      level = level_of_letter(inside);
    }
    if (level) {
      said_.level = *level;
    }
    pass(end + 1);
    take(said_.text, ":");
    return true;
  }

  /// "(RayTrainWorker pid=1234, ip=10.0.0.1)".
  bool parenthesis() {
    const std::size_t end = said_.text.find(')');
    if (said_.text.front() != '(' || end > kLongestBracket ||
        said_.text.substr(0, end).find("pid=") == std::string_view::npos) {
      return false;
    }
    pass(end + 1);
    return true;
  }

  /// "E0305 10:03:22.000000 140 torch/api.py:897] ".
  bool glog() {
    const auto level = level_of_letter(said_.text);
    const std::size_t end = said_.text.find("] ");
    if (!level || end > 2 * kLongestBracket) {
      return false;
    }
    said_.level = *level;
    pass(end + 2);
    return true;
  }

  /// "ERROR - ", "WARNING:", "ERROR:torch.distributed.elastic:" of Python's own format.
  bool level() {
    std::string_view text = said_.text;
    const auto level = take_level(text);
    if (!level) {
      return false;
    }
    said_.level = *level;
    if (take(text, ":") && !text.empty() && is_in_name(text.front())) {
      std::size_t end = 0;
      while (end < text.size() && is_in_name(text[end])) {
        ++end;
      }
      const bool name = end < text.size() && text[end] == ':' && !(end + 1 < text.size() && text[end + 1] == ' ');
      text.remove_prefix(name ? end + 1 : 0);
    }
    said_.text = text;
    return true;
  }

  /// A word of digits and the separators of times and dates.
  bool time() {
    std::size_t end = 0;
    int parts = 0;
    for (; end < said_.text.size() && said_.text[end] != ' '; ++end) {
      const char c = said_.text[end];
      if (!is_digit(c) && std::string_view("-:/.,+TZ").find(c) == std::string_view::npos) {
        return false;
      }
      parts += c == ':' || c == '-' || c == '/' ? 1 : 0;
    }
    if (parts < 2 || !is_digit(said_.text.front())) {
      return false;
    }
    pass(end);
    return true;
  }

  /// "May 15 23:09:27 gpu01 kernel: ".
  bool syslog() {
    constexpr std::string_view kMonths = "JanFebMarAprMayJunJulAugSepOctNovDecMonTueWedThuFriSatSun";
    const std::size_t kernel = said_.text.substr(0, kLongestBracket).find("kernel: ");
    if (kernel != std::string_view::npos &&
        said_.text.substr(0, kernel).find_first_of("\"'(") == std::string_view::npos) {
      pass(kernel + 8);
      return true;
    }
    const bool month = said_.text.size() > 4 && said_.text[3] == ' ' && is_upper(said_.text[0]) &&
                       kMonths.find(said_.text.substr(0, 3)) != std::string_view::npos;
    const std::size_t clock = month ? said_.text.substr(0, 20).find(':') : std::string_view::npos;
    if (clock == std::string_view::npos) {
      return false;
    }
    pass(said_.text.find(' ', clock));
    return true;
  }

  /// "trainer.py:698", "ProcessGroupNCCL.cpp:616:".
  bool place_in_code() {
    const std::size_t end = std::min(said_.text.find(' '), said_.text.size());
    const std::string_view word = said_.text.substr(0, end);
    const bool code = word.find(".py:") != std::string_view::npos || word.find(".cpp:") != std::string_view::npos ||
                      word.find(".cc:") != std::string_view::npos;
    if (!code || word.front() == '/') {
      return false;
    }
    pass(end);
    return true;
  }

  /// "fairseq.trainer | ", "__main__ - ", "torch.distributed.api: [ERROR]", "gpu-node-7: " of pdsh.
  bool logger() {
    std::size_t end = 0;
    bool upper = false;
    bool apart = false;  // has a digit, "-" or ".", so it is not a word of a sentence
    for (; end < said_.text.size() && is_in_name(said_.text[end]); ++end) {
      upper = upper || is_upper(said_.text[end]);
      apart = apart || !(is_letter(said_.text[end]) || said_.text[end] == '_');
    }
    if (!exception_name(said_.text).empty()) {
      return false;
    }
    std::string_view behind = said_.text.substr(end);
    while (behind.starts_with("  ")) {
      behind.remove_prefix(1);  // "LOGS    - ", in a column of its own
    }
    const bool host = !upper && apart && behind.starts_with(": ") && !said_.text.starts_with("slurmstepd");
    if (end == 0 || !(behind.starts_with(" - ") || behind.starts_with(" | ") || behind.starts_with(": [") || host)) {
      return false;
    }
    pass(said_.text.size() - behind.size() + (host ? 1 : 0));
    return true;
  }

  /// A character outside ASCII followed by a blank, with which some programs start their lines.
  bool picture() {
    std::size_t end = 0;
    while (end < said_.text.size() && static_cast<signed char>(said_.text[end]) < 0) {
      ++end;
    }
    if (end == 0 || end > 8 || end >= said_.text.size() || said_.text[end] != ' ') {
      return false;
    }
    pass(end);
    return true;
  }

  static bool take(std::string_view& text, std::string_view words) {
    const bool there = text.starts_with(words);
    text.remove_prefix(there ? words.size() : 0);
    return there;
  }

  LogMessage said_;
};

}  // namespace

LogMessage message_in(std::string_view line) { return Front(line).strip(); }

std::string_view exception_name(std::string_view text) {
  const auto end = std::find_if_not(text.begin(), text.end(), [](char c) { return is_word(c) || c == '.'; });
  const std::string_view name = text.substr(0, static_cast<std::size_t>(end - text.begin()));
  const std::string_view last = name.substr(name.rfind('.') + 1);  // also without a dot: npos + 1 is 0
  const bool ends_so = std::ranges::any_of(std::array{"Error", "Exception", "Interrupt", "StopIteration", "SystemExit"},
                                           [&](std::string_view end_of) { return last.ends_with(end_of); });
  const bool of_a_class = !last.empty() && (is_upper(last.front()) || last.front() == '_');
  const bool apart = name.size() == text.size() || text[name.size()] == ':' || text[name.size()] == '(';
  return ends_so && of_a_class && apart && last != "Error" ? name : std::string_view();
}

}  // namespace unidle::logs::detail
