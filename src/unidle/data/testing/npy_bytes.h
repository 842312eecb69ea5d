// An .npy file for tests.
#pragma once

#include <cstddef>
#include <string>

namespace unidle::data::testing {

/// `type` and `shape` in Python's notation.
inline std::string npy_of(const std::string& type, const std::string& shape, const std::string& values) {
  std::string header = "{'descr': '" + type + "', 'fortran_order': False, 'shape': " + shape + ", }";
  header.resize(118 - 1, ' ');
  header += '\n';
  std::string bytes("\x93NUMPY\x01\x00", 8);
  bytes += static_cast<char>(header.size());
  bytes += '\0';
  return bytes + header + values;
}

/// Filled with zeros.
inline std::string npy_of_floats(const std::string& shape, std::size_t values) {
  return npy_of("<f4", shape, std::string(values * sizeof(float), '\0'));
}

}  // namespace unidle::data::testing
