#include "unidle/knobs/detail/words.h"

#include <algorithm>
#include <array>
#include <utility>

#include "unidle/base/characters.h"

namespace unidle::knobs::detail {

namespace {

/// Compound words and abbreviations.
constexpr std::array<std::pair<std::string_view, std::string_view>, 19> kForms = {{
    {"bs", "batch size"},
    {"batchsize", "batch size"},
    {"microbatch", "micro batch size"},
    {"minibatch", "mini batch size"},
    {"nworkers", "num worker"},
    {"numworkers", "num worker"},
    {"nthreads", "num thread"},
    {"dataloader", "data loader"},
    {"lr0", "lr"},
    {"learningrate", "lr"},
    {"training", "train"},
    {"enabled", "enable"},
    {"gpus", "gpu"},
    {"gradaccum", "grad accum"},
    {"pinmemory", "pin memory"},
    {"pinmem", "pin memory"},
    {"dtypes", "dtype"},
    {"optimiser", "optimizer"},
    {"nonblocking", "non blocking"},
}};

void add_word(std::string word, Words& words) {
  const auto form = std::find_if(kForms.begin(), kForms.end(), [&](const auto& pair) { return pair.first == word; });
  if (form != kForms.end()) {
    for (std::string& part : split_words(form->second)) {
      words.push_back(std::move(part));
    }
    return;
  }
  const bool plural = word.size() > 3 && word.back() == 's' && word != "batches" && !word.ends_with("ss") &&
                      !word.ends_with("us") && !word.ends_with("is");
  if (plural) {
    word.pop_back();
  }
  if (word == "rate" && !words.empty() && words.back() == "learning") {
    words.back() = "lr";
  } else if (word == "size" && !words.empty() && words.back() == "size") {
    return;  // the abbreviation already includes it
  } else {
    words.push_back(std::move(word));
  }
}

}  // namespace

Words words_of(std::string_view key) {
  Words words;
  std::string word;
  const auto flush = [&] {
    if (!word.empty()) {
      add_word(std::exchange(word, {}), words);
    }
  };
  for (std::size_t i = 0; i < key.size(); ++i) {
    const char c = key[i];
    if (!is_upper(c) && !is_lower(c) && !is_digit(c)) {
      flush();
      continue;
    }
    if (is_upper(c) && i > 0 && is_lower(key[i - 1])) {
      flush();
    }
    word += lower(c);
  }
  flush();
  return words;
}

Words split_words(std::string_view list) {
  Words words;
  while (!list.empty()) {
    const std::size_t end = std::min(list.find(' '), list.size());
    if (end > 0) {
      add_word(std::string(list.substr(0, end)), words);
    }
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return words;
}

Words split_list(std::string_view list) {
  Words names;
  while (!list.empty()) {
    const std::size_t end = std::min(list.find(' '), list.size());
    names.emplace_back(list.substr(0, end));
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return names;
}

bool contains(const Words& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool any_in(const Words& words, const Words& wanted) {
  return std::any_of(words.begin(), words.end(), [&](const std::string& word) { return contains(wanted, word); });
}

std::vector<std::string> keys_of(std::string_view path) {
  std::vector<std::string> keys;
  while (!path.empty()) {
    const std::size_t dot = std::min(path.find('.'), path.size());
    std::string_view key = path.substr(0, dot);
    key = key.substr(0, key.find('['));
    if (!key.empty()) {
      keys.emplace_back(key);
    }
    path.remove_prefix(std::min(dot + 1, path.size()));
  }
  return keys;
}

}  // namespace unidle::knobs::detail
