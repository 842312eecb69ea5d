#include "unidle/knobs/interval_names.h"

#include <algorithm>
#include <string>

#include "unidle/knobs/detail/words.h"

namespace unidle::knobs {

using detail::Words;

bool names_interval_of_validation(std::string_view key) {
  static const Words kValidation = detail::split_words("val valid validate validation eval evaluation evaluate test");
  static const Words kInterval = detail::split_words("every interval freq frequency period");
  static const Words kBeside = detail::split_words("n num check per in epoch step iter batch x");
  const Words words = detail::words_of(key);
  return detail::any_in(words, kValidation) && detail::any_in(words, kInterval) &&
         std::ranges::all_of(words, [](const std::string& word) {
           return std::ranges::any_of(std::initializer_list<const Words*>{&kValidation, &kInterval, &kBeside},
                                      [&](const Words* known) { return detail::contains(*known, word); });
         });
}

}  // namespace unidle::knobs
