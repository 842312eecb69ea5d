// Tests that compare generated documents and tables with the sources. With UNIDLE_UPDATE_DOCS set, as in ./dev format,
// the same tests write them.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "unidle/base/files.h"

namespace unidle::testing {

/// Expects the file `path` of the source tree to equal `expected`.
inline void expect_generated(const std::filesystem::path& path, const std::string& expected) {
  if (std::getenv("UNIDLE_UPDATE_DOCS") != nullptr) {
    write_file_atomic(path, expected);
  }
  EXPECT_EQ(read_file(path), expected) << path << " is stale: ./dev format writes it";
}

/// Expects `rows` in the page `path` between the table's `head` and the next empty line or the end.
inline void expect_generated_table(const std::filesystem::path& path, const std::string& head,
                                   const std::string& rows) {
  const std::string page = read_file(path);
  const std::size_t at = page.find(head);
  ASSERT_NE(at, std::string::npos) << path << " lacks the table " << head;
  const std::size_t begin = at + head.size();
  const std::size_t gap = page.find("\n\n", begin - 1);
  const std::size_t end = gap == std::string::npos ? page.size() : gap + 1;
  expect_generated(path, page.substr(0, begin) + rows + page.substr(end));
}

}  // namespace unidle::testing
