#include "unidle/train/failure.h"

#include <c10/util/Exception.h>

#include <new>
#include <string_view>

#include "unidle/base/error.h"
#include "unidle/base/printable.h"

namespace unidle::train {

bool is_out_of_memory(const std::exception& failure) {
  if (dynamic_cast<const c10::OutOfMemoryError*>(&failure) != nullptr ||
      dynamic_cast<const std::bad_alloc*>(&failure) != nullptr) {
    return true;
  }
  if (const auto* error = dynamic_cast<const Error*>(&failure)) {
    return error->code() == ErrorCode::kOutOfMemory;
  }
  // Torch's host allocator, cuDNN and cuBLAS throw generic errors, so the text decides.
  const std::string_view text = failure.what();
  return text.find("out of memory") != std::string_view::npos ||
         text.find("not enough memory") != std::string_view::npos ||
         text.find("allocate memory") != std::string_view::npos || text.find("ALLOC_FAILED") != std::string_view::npos;
}

std::string last_line_of(const std::exception& failure) {
  std::string_view text = failure.what();
  text = text.substr(0, text.find("\nException raised from "));  // torch's C++ adds its own stack behind
  const std::size_t end = text.find_last_not_of(" \r\n");
  text = text.substr(0, end == std::string_view::npos ? 0 : end + 1);
  const std::size_t line = text.rfind('\n');
  const std::string words = printable_line(line == std::string_view::npos ? text : text.substr(line + 1));
  return words.empty() ? "the module raises for it" : words;
}

}  // namespace unidle::train
