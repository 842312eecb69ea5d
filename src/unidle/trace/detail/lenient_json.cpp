#include "unidle/trace/detail/lenient_json.h"

#include "unidle/base/utf8.h"

namespace unidle::trace::detail {

namespace {

constexpr std::size_t kBlock = std::size_t{256} << 10U;
constexpr std::size_t kLongestKey = 256;                     // searched for behind a quote
constexpr std::size_t kMostBlanks = std::size_t{64} << 10U;  // likewise
constexpr std::string_view kReplacement = "\xef\xbf\xbd";

bool is_blank(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }
bool begins_word(char c) { return c == 'N' || c == 'I' || c == 'n' || c == 'i' || c == '-'; }

using Table = std::array<bool, 256>;

/// Bytes inside a string that need no check.
constexpr Table kPlain = [] {
  Table plain{};
  for (std::size_t byte = 0x20; byte < 0x80; ++byte) {
    plain.at(byte) = std::string_view("\"\\{[}]").find(static_cast<char>(byte)) == std::string_view::npos;
  }
  return plain;
}();
/// Bytes outside strings that need no check.
constexpr Table kUnmarked = [] {
  Table ordinary{};
  for (std::size_t byte = 0; byte < ordinary.size(); ++byte) {
    ordinary.at(byte) = std::string_view("\"{[}]NIni-").find(static_cast<char>(byte)) == std::string_view::npos;
  }
  return ordinary;
}();
bool is_plain(char c) { return kPlain.at(static_cast<unsigned char>(c)); }
bool begins_value(char c) {
  return (c >= '0' && c <= '9') || std::string_view("\"[{-tfnNIi").find(c) != std::string_view::npos;
}

/// The length of NaN or an infinity, which JSON lacks, at the begin of `text`; 0 without one.
std::size_t non_number_length(std::string_view text) {
  static constexpr std::array<std::string_view, 5> kWords = {"NaN", "nan", "Infinity", "inf", "Inf"};
  const std::size_t sign = text.starts_with("-") ? 1 : 0;
  for (const std::string_view word : kWords) {
    if (text.substr(sign).starts_with(word)) {
      return sign + word.size();
    }
  }
  return 0;
}

/// The value of four hexadecimal digits, or -1.
int hex4(std::string_view digits) {
  int value = 0;
  for (const char c : digits) {
    const int digit = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                             : -1;
    if (digit < 0) {
      return -1;
    }
    value = value * 16 + digit;
  }
  return digits.size() == 4 ? value : -1;
}

}  // namespace

LenientJson::LenientJson(logs::Source& source) : source_(source) { refill(); }

bool LenientJson::fetch(std::size_t bytes) {
  while (!drained_ && in_.size() - in_at_ < bytes) {
    in_.erase(0, in_at_);
    in_at_ = 0;
    const std::size_t had = in_.size();
    in_.resize(had + kBlock);
    const std::size_t got = source_.read({in_.data() + had, kBlock});
    in_.resize(had + got);
    drained_ = got == 0;
  }
  return in_.size() - in_at_ >= bytes;
}

void LenientJson::refill() {
  before_ += out_.size();
  out_.clear();
  out_at_ = 0;
  while (out_.size() < kBlock && have(1)) {
    in_text_ ? inside() : outside();
  }
}

void LenientJson::pass(std::size_t bytes) {
  out_.append(in_, in_at_, bytes);
  in_at_ += bytes;
}

std::size_t LenientJson::skip_blanks(std::size_t offset) {
  const std::size_t most = offset + kMostBlanks;
  while (offset < most && is_blank(at(offset))) {
    ++offset;
  }
  return offset;
}

std::size_t LenientJson::run_of(const std::array<bool, 256>& kind) const {
  std::size_t end = in_at_;
  while (end < in_.size() && kind[static_cast<unsigned char>(in_[end])]) {  // NOLINT(*-constant-array-index)
    ++end;
  }
  return end - in_at_;
}

void LenientJson::outside() {
  if (const std::size_t run = run_of(kUnmarked)) {
    const std::string_view text = ahead().substr(0, run);
    const std::size_t mark = text.find_last_not_of(" \n\r\t");
    last_ = mark == std::string_view::npos ? last_ : text[mark];
    pass(run);
    return;
  }
  const char c = in_[in_at_];
  if (begins_word(c)) {
    have(sizeof("-Infinity"));
    if (const std::size_t length = non_number_length(ahead())) {
      out_ += "null";
      in_at_ += length;
      last_ = 'l';
      return;
    }
  }
  if (c == '"') {
    in_text_ = true;
    in_key_ = !open_.empty() && open_.back() == '{' && (last_ == '{' || last_ == ',');
    bare_ = of_json_ = false;
    nested_ = 0;
  } else if (c == '{' || c == '[') {
    open_.push_back(c);
  } else if ((c == '}' || c == ']') && !open_.empty()) {
    open_.pop_back();
  }
  last_ = c;
  pass(1);
}

void LenientJson::inside() {
  if (const std::size_t run = run_of(kPlain)) {
    pass(run);
    return;
  }
  const char c = in_[in_at_];
  if (c == '"') {
    quote();
  } else if (c == '\\') {
    escape();
  } else if (static_cast<unsigned char>(c) < 0x20) {
    out_ += ' ';
    ++in_at_;
  } else if (static_cast<unsigned char>(c) >= 0x80) {
    have(4);
    const CodePoint point = first_code_point(ahead());
    if (point.bytes == 0) {
      out_ += kReplacement;
      ++in_at_;
    } else {
      pass(point.bytes);
    }
  } else {  // a bracket or brace
    nested_ += c == '{' || c == '[' ? 1 : -1;
    pass(1);
  }
}

void LenientJson::quote() {
  if (closes()) {
    in_text_ = false;
    last_ = '"';
    pass(1);
    return;
  }
  if (!bare_) {
    bare_ = true;
    of_json_ = !out_.empty() && (out_.back() == '{' || out_.back() == '[');
  }
  out_ += "\\\"";
  ++in_at_;
}

void LenientJson::escape() {
  const char next = at(1);
  if (next == '"' && !in_key_ && !open_.empty() && open_.back() == '{') {
    const std::size_t comma = skip_blanks(2);
    if (at(comma) == ',' && key_follows(comma + 1, true)) {
      out_ += "\\\\";  // a label that ends with a backslash: in strict JSON no key can follow here
      ++in_at_;
      return;
    }
  }
  if (next != '\0' && std::string_view("\"\\/bfnrt").find(next) != std::string_view::npos) {
    pass(2);
    return;
  }
  have(12);
  const int value = next == 'u' ? hex4(ahead().substr(2, 4)) : -1;
  if (value < 0) {
    out_ += "\\\\";
    ++in_at_;
  } else if (value < 0xd800 || value > 0xdfff) {
    pass(6);
  } else if (const int low = ahead().substr(6).starts_with("\\u") ? hex4(ahead().substr(8, 4)) : -1;
             value < 0xdc00 && low >= 0xdc00 && low <= 0xdfff) {
    pass(12);
  } else {
    out_ += "\\ufffd";  // half of a surrogate pair
    in_at_ += 6;
  }
}

/// Whether the quote at in_at_ ends the string. In strict JSON every unescaped quote does; a colon, a comma before the
/// next value, or a closing bracket follows.
bool LenientJson::closes() {
  const std::size_t next = skip_blanks(1);
  const char c = at(next);
  if (!have(next + 1) || open_.empty() || is_blank(c)) {
    return true;
  }
  if (in_key_) {
    return c == ':';
  }
  if (of_json_ && nested_ > 0) {
    return false;
  }
  if (open_.back() == '{') {
    return c == '}' ? closes_container(next + 1) : c == ',' && key_follows(next + 1, false);
  }
  return c == ']' ? closes_container(next + 1) : c == ',' && begins_value(at(skip_blanks(next + 1)));
}

bool LenientJson::closes_container(std::size_t offset) {
  const std::size_t next = skip_blanks(offset);
  const char c = at(next);
  return !have(next + 1) || c == ',' || c == '}' || c == ']';
}

/// Whether a key and its colon are at `offset`. Unless `surely`, a key too long to scan counts as one.
bool LenientJson::key_follows(std::size_t offset, bool surely) {
  std::size_t next = skip_blanks(offset);
  if (at(next) != '"') {
    return false;
  }
  const std::size_t begin = ++next;
  while (have(next + 1) && at(next) != '"') {
    if (next - begin > kLongestKey || (surely && !is_plain(at(next)))) {
      return !surely;
    }
    next += at(next) == '\\' ? 2 : 1;
  }
  return have(next + 1) ? next > begin && at(skip_blanks(next + 1)) == ':' : !surely;
}

}  // namespace unidle::trace::detail
