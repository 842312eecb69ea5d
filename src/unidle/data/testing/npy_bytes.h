// An .npy file for tests.
#pragma once

#include <cstddef>
#include <string>

namespace unidle::data::testing {

/// With zeros; `shape` as Python writes it.
inline std::string npy_of_floats(const std::string& shape, std::size_t values) {
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': " + shape + ", }";
  header.resize(118 - 1, ' ');
  header += '\n';
  std::string bytes("\x93NUMPY\x01\x00", 8);
  bytes += static_cast<char>(header.size());
  bytes += '\0';
  return bytes + header + std::string(values * sizeof(float), '\0');
}

}  // namespace unidle::data::testing
