#include "unidle/diagnose/language.h"

namespace unidle::diagnose {

const std::vector<std::pair<std::string_view, std::string_view>>& chinese_messages() {
  static const std::vector<std::pair<std::string_view, std::string_view>> kMessages = {};
  return kMessages;
}

}  // namespace unidle::diagnose
