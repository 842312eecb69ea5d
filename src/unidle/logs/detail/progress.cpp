#include "unidle/logs/detail/progress.h"

#include <algorithm>
#include <array>
#include <limits>

#include "unidle/base/characters.h"
#include "unidle/base/substrings.h"
#include "unidle/logs/detail/numbers.h"

namespace unidle::logs::detail {

namespace {

constexpr std::size_t kMostSigns = 4;
constexpr std::size_t kMostBlanks = 24;

bool is_sign(char c) {
  switch (c) {
    case ':':
    case '=':
    case '#':
    case '[':
    case '(':
    case '\'':
    case '"':
    case '>':
    case '*':
    case '|': return true;  // "| loss | 0.905 |", the tables of OpenAI's Baselines and of programs built on them
    default: return false;
  }
}

bool take_total(std::string_view& text, double& total) {
  std::string_view rest = text;
  skip_blanks(rest);
  if (rest.starts_with("/")) {
    rest.remove_prefix(1);
  } else if (rest.starts_with("of ")) {
    rest.remove_prefix(3);
  } else {
    return false;
  }
  skip_blanks(rest);
  const bool found = take_number(rest, total);
  text = found ? rest : text;
  return found;
}

/// "][120/5000]", " [12800/60000 (21%)]" or ":  100 / 1000" after a count.
void take_inner(std::string_view text, Count& count) {
  bool colon = false;
  while (!text.empty() &&
         (text.front() == ']' || text.front() == ')' || text.front() == ':' || is_blank(text.front()))) {
    colon = colon || text.front() == ':';
    text.remove_prefix(1);
  }
  if (text.starts_with("[")) {
    text.remove_prefix(1);
    skip_blanks(text);
  } else if (!colon) {
    return;
  }
  double value = 0;
  double total = 0;
  if (!take_number(text, value) || !take_total(text, total) || total <= 0) {
    return;
  }
  count.inner = value;
  count.inner_total = total;
  skip_blanks(text);
  count.inner_is_samples = text.starts_with("(");
}

/// Consumes "12", "01:23" or "1:02:03"; does not accept "1 day, 0:00:01".
std::optional<double> take_clock(std::string_view& text) {
  double seconds = 0;
  for (int part = 0; part < 3; ++part) {
    const auto digits = take_digits(text);
    if (!digits || *digits > 100'000'000) {
      return std::nullopt;
    }
    seconds = seconds * 60 + static_cast<double>(*digits);
    if (text.empty() || text.front() != ':') {
      break;
    }
    text.remove_prefix(1);
  }
  return seconds;
}

/// The factor of a letter after a number; 0 for any other letter.
double scale_of(char letter) { return letter == 'k' ? 1e3 : letter == 'M' ? 1e6 : letter == 'G' ? 1e9 : 0; }

/// tqdm's numbers: "450", "1.20k", "5.00M", "?".
bool take_scaled(std::string_view& text, double& value) {
  if (!take_number(text, value)) {
    return false;
  }
  const double scale = text.empty() ? 0 : scale_of(text.front());
  if (scale > 0) {
    text.remove_prefix(1);
    value *= scale;
  }
  return true;
}

/// Length of what may follow a word before its count: "iteration 3", "batch_idx=3", "轮次: 3", "Iter(train) [
/// 50/1000]".
std::size_t tail_size(std::string_view text) {
  static constexpr std::array<std::string_view, 7> kTails = {"ation", "次", "index", "idx", "_idx", "_id", "(train)"};
  for (const std::string_view tail : kTails) {
    if (text.starts_with(tail)) {
      return tail.size();
    }
  }
  return 0;
}

/// Whether the rate of a bar counts samples: "<01:00, 32.00img/s, loss=0.5]", "<01:00,  1.50s/img]".
bool has_unit_of_samples(std::string_view behind_clock) {
  static constexpr std::array<std::string_view, 10> kSamples = {
      "img", "imgs", "image", "images", "sample", "samples", "example", "examples", "sequence", "sequences"};
  const std::size_t comma = behind_clock.find(", ");
  const std::size_t at =
      comma == std::string_view::npos ? comma : behind_clock.find_first_not_of(" 0123456789.", comma + 1);
  if (at == std::string_view::npos) {
    return false;
  }
  const std::size_t end = std::min(behind_clock.find_first_of(",]", at), behind_clock.size());
  std::string_view unit = trimmed(behind_clock.substr(at, end - at));
  if (unit.ends_with("/s")) {
    unit.remove_suffix(2);
  } else if (unit.starts_with("s/")) {
    unit.remove_prefix(2);
  }
  return std::ranges::find(kSamples, unit) != kSamples.end();
}

/// Consumes "3/10" at the front of `text`.
std::optional<Count> take_count(std::string_view& text) {
  skip_blanks(text);
  const auto value = take_digits(text);
  if (!value || !text.starts_with("/")) {
    return std::nullopt;
  }
  text.remove_prefix(1);
  const auto total = take_digits(text);
  if (!total || *value > *total) {
    return std::nullopt;
  }
  Count count;
  count.value = static_cast<double>(*value);
  count.total = static_cast<double>(*total);
  return count;
}

/// More than one character, as in "损失值 0.5": words of a sentence ("损失计算中发现 1 个无穷值").
bool is_chinese_sentence(std::string_view name) {
  constexpr std::size_t kBytesOfCharacter = 3;
  return name.size() > kBytesOfCharacter &&
         std::ranges::any_of(name, [](char c) { return static_cast<unsigned char>(c) >= 0x80; });
}

bool begins_with_colon(std::string_view rest) {
  rest = trimmed(rest);
  return rest.starts_with(":") || rest.starts_with("=") || rest.starts_with("：");
}

}  // namespace

std::size_t skip_signs(std::string_view& text) {
  std::size_t signs = 0;
  std::size_t blanks = 0;
  while (!text.empty()) {
    if (is_blank(text.front()) && blanks < kMostBlanks) {
      ++blanks;
      text.remove_prefix(1);
    } else if (is_sign(text.front()) && signs < kMostSigns) {
      ++signs;
      text.remove_prefix(1);
    } else if (static_cast<signed char>(text.front()) < 0 && text.starts_with("：") && signs < kMostSigns) {
      ++signs;
      text.remove_prefix(3);
    } else {
      break;
    }
  }
  return signs + blanks;
}

double take_unit(std::string_view& text) {
  struct Unit {
    std::string_view name;
    double seconds;
  };
  static constexpr std::array kUnits = {
      Unit{"ms", 1e-3},    Unit{"msec", 1e-3}, Unit{"us", 1e-6},    Unit{"s", 1},   Unit{"sec", 1},
      Unit{"secs", 1},     Unit{"second", 1},  Unit{"seconds", 1},  Unit{"秒", 1},  Unit{"m", 60},
      Unit{"min", 60},     Unit{"mins", 60},   Unit{"minutes", 60}, Unit{"分", 60}, Unit{"h", 3600},
      Unit{"hours", 3600}, Unit{"小时", 3600},
  };
  std::string_view rest = text;
  skip_blanks(rest);
  if (rest.empty() || (static_cast<signed char>(rest.front()) >= 0 && !is_letter(rest.front()))) {
    return 0;
  }
  for (const Unit& unit : kUnits) {
    const bool ascii = is_letter(unit.name.front());
    const std::size_t size = unit.name.size();
    if (rest.starts_with(unit.name) && (!ascii || rest.size() == size || !is_word(rest[size]))) {
      rest.remove_prefix(size);
      text = rest;
      return unit.seconds;
    }
  }
  return 0;
}

std::optional<Count> count_after(std::string_view line, std::size_t end) {
  std::string_view rest = line.substr(std::min(end, line.size()));
  rest.remove_prefix(tail_size(rest));
  const bool plural = rest.starts_with('s');
  rest.remove_prefix(plural ? 1 : 0);
  std::optional<Count> count;
  double value = 0;
  if (rest.empty() || skip_signs(rest) == 0 || !take_number(rest, value) || value < 0 ||
      (!rest.empty() && (is_letter(rest.front()) || rest.front() == '%'))) {
    return count;
  }
  count.emplace();
  count->value = value;
  count->plural = plural;
  if (double total = 0; take_total(rest, total)) {
    count->total = total;
  }
  take_inner(rest, *count);
  return count;
}

std::optional<Count> count_before(std::string_view line, std::size_t begin) {
  std::size_t at = begin;
  const auto is_part = [](char c) { return is_digit(c) || c == '/' || c == ' '; };
  while (at > 0 && begin - at < 24 && is_part(line[at - 1])) {
    --at;
  }
  std::string_view text = line.substr(at, begin - at);
  const bool ordinal = line.substr(0, at).ends_with("第");
  skip_blanks(text);
  const auto value = take_number(text);
  if (!value || *value < 0) {
    return std::nullopt;
  }
  Count count;
  count.value = *value;
  if (double total = 0; take_total(text, total)) {
    count.total = total;
  }
  return ordinal || count.total ? std::optional(count) : std::nullopt;
}

std::optional<Count> count_of_keras(std::string_view line) {
  const auto count = take_count(line);
  skip_blanks(line);
  const bool is_bar =
      line.starts_with("━") || line.starts_with("[=") || line.starts_with("[>") || line.starts_with("[..");
  return count && is_bar ? count : std::nullopt;
}

std::optional<Count> count_in_brackets(std::string_view line) {
  if (!line.starts_with('[')) {
    return std::nullopt;
  }
  line.remove_prefix(1);
  const auto count = take_count(line);
  return count && line.starts_with(']') ? count : std::nullopt;
}

std::optional<Count> count_of_yolo(std::string_view label) {
  const auto count = take_count(label);
  skip_blanks(label);
  const auto memory = take_number(label);
  return count && memory && (label.starts_with("G ") || label.starts_with("M ")) ? count : std::nullopt;
}

bool is_of_earlier(std::string_view line, std::size_t begin) {
  static constexpr std::array<std::string_view, 7> kBefore = {"at ", "in ", "from ", "est ", "with ", "@ ", "@"};
  static constexpr std::array<std::string_view, 6> kWhat = {"best", "Best", "oad", "esum", "estor", "BEST"};
  const std::string_view before = line.substr(0, begin);
  return std::ranges::any_of(kBefore, [&](std::string_view word) { return before.ends_with(word); }) &&
         contains_any(before, kWhat);
}

std::optional<double> value_after(std::string_view line, std::size_t end) {
  std::string_view rest = line.substr(std::min(end, line.size()));
  if (skip_signs(rest) == 0) {
    return std::nullopt;
  }
  if (const auto value = take_number(rest)) {
    return value;
  }
  const double sign = rest.starts_with("-") ? -1 : 1;
  rest.remove_prefix(sign < 0 ? 1 : 0);
  const auto is = [&](std::string_view word) {
    if (rest.size() < word.size() || (rest.size() > word.size() && is_word(rest[word.size()]))) {
      return false;
    }
    return std::equal(word.begin(), word.end(), rest.begin(), [](char a, char b) { return a == lower(b); });
  };
  if (is("nan")) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  if (is("inf") || is("infinity")) {
    return sign * std::numeric_limits<double>::infinity();
  }
  return std::nullopt;
}

std::optional<bool> finite_after(std::string_view line, std::size_t end) {
  constexpr std::size_t kMostDigits = 30;
  std::string_view rest = line.substr(std::min(end, line.size()));
  static constexpr std::array<std::string_view, 6> kOthers = {"scale", "best", "min", "weight", "coef", "ratio"};
  const std::size_t begin_of_name = end;
  while (!rest.empty() && (is_word(rest.front()) || rest.front() == '/')) {
    rest.remove_prefix(1);  // "loss_total", "loss/train"
    ++end;
  }
  const std::string_view name = line.substr(begin_of_name, end - begin_of_name);
  if (contains_any(name, kOthers) || (is_chinese_sentence(name) && !begins_with_colon(rest))) {
    return std::nullopt;
  }
  if (skip_signs(rest) == 0 || rest.empty()) {
    return std::nullopt;
  }
  constexpr std::string_view kTensor = "tensor(";
  if (rest.starts_with(kTensor)) {
    rest.remove_prefix(kTensor.size());
    end = static_cast<std::size_t>(rest.data() - line.data()) - 1;  // the value may be nan: the bracket is its sign
  }
  if (rest.empty()) {
    return std::nullopt;
  }
  std::size_t at = rest.front() == '-' ? 1 : 0;
  const std::size_t begin = at;
  while (at < rest.size() && (is_digit(rest[at]) || (rest[at] == '.' && at > begin))) {
    ++at;
  }
  if (at > begin && at - begin <= kMostDigits && (at == rest.size() || (rest[at] | 0x20) != 'e')) {
    return true;
  }
  const auto value = value_after(line, end);
  return value ? std::optional(std::isfinite(*value)) : std::nullopt;
}

std::optional<double> value_before(std::string_view line, std::size_t begin) {
  std::size_t end = begin;
  while (end > 0 && is_blank(line[end - 1])) {
    --end;
  }
  const double scale = end > 1 && is_digit(line[end - 2]) ? scale_of(line[end - 1]) : 0;  // "37.5k tok/s"
  end -= scale > 0 ? 1 : 0;
  std::size_t at = end;
  while (at > 0 && end - at < 24 && (is_digit(line[at - 1]) || line[at - 1] == '.' || line[at - 1] == ',')) {
    --at;
  }
  std::string_view text = line.substr(at, end - at);
  while (!text.empty() && text.front() == ',') {
    text.remove_prefix(1);
  }
  const auto value = whole_number(text);
  return value && scale > 0 ? std::optional(*value * scale) : value;
}

std::string_view token_after(std::string_view line, std::size_t end) {
  std::string_view rest = line.substr(std::min(end, line.size()));
  if (skip_signs(rest) == 0) {
    return {};
  }
  std::size_t size = 0;
  while (
      size < rest.size() && size < 32 &&
      (is_letter(rest[size]) || is_digit(rest[size]) || rest[size] == '.' || rest[size] == ':' || rest[size] == '_')) {
    ++size;
  }
  rest = rest.substr(0, size);
  while (!rest.empty() && (rest.back() == '.' || rest.back() == ':')) {
    rest.remove_suffix(1);
  }
  return rest;
}

std::optional<double> seconds_after(std::string_view line, std::size_t end, bool bare) {
  std::string_view rest = line.substr(std::min(end, line.size()));
  if (skip_signs(rest) == 0) {
    return std::nullopt;
  }
  std::string_view clock = rest;
  if (const auto seconds = take_clock(clock);
      seconds && clock.data() > rest.data() &&
      rest.substr(0, rest.size() - clock.size()).find(':') != std::string_view::npos) {
    return seconds;
  }
  const auto value = take_number(rest);
  if (!value || *value < 0) {
    return std::nullopt;
  }
  const double unit = take_unit(rest);
  return unit > 0 ? std::optional(*value * unit) : bare ? value : std::nullopt;
}

std::optional<double> seconds_of_timedelta(std::string_view text) {
  constexpr double kDay = 86'400;
  double days = 0;
  std::string_view rest = text;
  if (const auto number = take_digits(rest)) {
    for (const std::string_view unit : {" days, ", " day, ", "-"}) {
      if (rest.starts_with(unit)) {
        days = static_cast<double>(*number);
        text = rest.substr(unit.size());
        break;
      }
    }
  }
  const std::string_view clock = text;
  const auto seconds = take_clock(text);
  const std::string_view read = clock.substr(0, clock.size() - text.size());
  const bool whole = std::count(read.begin(), read.end(), ':') == 2;
  return seconds && whole ? std::optional(days * kDay + *seconds) : std::nullopt;
}

std::optional<Bar> read_bar(std::string_view line, std::size_t bar_at) {
  std::size_t percent = bar_at;
  while (percent > 0 && is_digit(line[percent - 1])) {
    --percent;
  }
  const std::size_t close = percent == bar_at ? std::string_view::npos : line.find('|', bar_at + 2);
  if (close == std::string_view::npos) {
    return std::nullopt;
  }
  std::string_view rest = line.substr(close + 1);
  skip_blanks(rest);
  Bar bar;
  if (!take_scaled(rest, bar.done) || rest.empty() || rest.front() != '/') {
    return std::nullopt;
  }
  rest.remove_prefix(1);
  const bool has_total = take_scaled(rest, bar.total);
  const std::size_t bracket = rest.find('[');
  if (!has_total || bracket == std::string_view::npos || bracket > 24) {
    return std::nullopt;
  }
  rest.remove_prefix(bracket + 1);
  const auto elapsed = take_clock(rest);
  if (!elapsed || bar.done < 0 || bar.total <= 0) {
    return std::nullopt;
  }
  bar.counts_samples = has_unit_of_samples(rest);
  bar.label = trimmed(line.substr(0, percent));
  bar.elapsed_s = *elapsed;
  return bar;
}

bool is_of_preparation(std::string_view line, std::size_t bar_at) {
  static constexpr std::array<std::string_view, 32> kLabels = {
      "Loading",    "Preloading", "Downloading", "Fetching",         "Map:",       "Map (",         "Filter:",
      "Filter (",   "Tokenizing", "Generating",  "Converting",       "Creating",   "Saving",        "Writing",
      "Extracting", "Uploading",  "Resolving",   "Casting",          "Flattening", "Preprocessing", "Preparing",
      "Caching",    "Scanning",   "Building",    "Packing",          "Grouping",   "Truncating",    "Adding EOS",
      "Formatting", "Reading",    "Applying",    "Running tokenizer"};
  const std::string_view label = trimmed(line.substr(0, bar_at));
  const bool named = std::ranges::any_of(kLabels, [&](std::string_view one) { return label.starts_with(one); });
  return named || line.substr(bar_at).find("B/s]") != std::string_view::npos;
}

}  // namespace unidle::logs::detail
