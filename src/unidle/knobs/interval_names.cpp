#include "unidle/knobs/interval_names.h"

#include <algorithm>
#include <string>

#include "unidle/knobs/detail/words.h"

namespace unidle::knobs {

using detail::Words;

namespace {

const Words& words_of_validation() {
  static const Words kValidation = detail::split_words("val valid validate validation eval evaluation evaluate test");
  return kValidation;
}

/// Whether the words of `key` are of validation, one of `intervals`, and `beside`.
bool consists_of(std::string_view key, const Words& intervals, const Words& beside) {
  const Words words = detail::words_of(key);
  return detail::any_in(words, words_of_validation()) && detail::any_in(words, intervals) &&
         std::ranges::all_of(words, [&](const std::string& word) {
           return detail::contains(words_of_validation(), word) || detail::contains(intervals, word) ||
                  detail::contains(beside, word);
         });
}

}  // namespace

bool names_interval_of_validation(std::string_view key) {
  static const Words kInterval = detail::split_words("every interval freq frequency period");
  static const Words kBeside = detail::split_words("n num check per in epoch step iter batch x");
  return consists_of(key, kInterval, kBeside);
}

bool may_name_interval_of_validation(std::string_view key) {
  static const Words kUnits = detail::split_words("step");
  return names_interval_of_validation(key) || consists_of(key, kUnits, {});
}

}  // namespace unidle::knobs
