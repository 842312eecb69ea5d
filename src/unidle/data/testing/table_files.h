// Shared by tests of CSV tables.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/data/sources/table.h"

namespace unidle::data::testing {

/// Features, then targets.
using Row = std::vector<float>;

/// Provides a folder of tables and reads the rows of a source.
class TableTest : public ::testing::Test {
 protected:
  std::string put(const std::string& name, std::string_view text) {
    const std::filesystem::path path = folder_.path() / name;
    std::filesystem::create_directories(path.parent_path());
    write_file_atomic(path, text);
    return path.string();
  }

  /// Options for these files; built tables go into the same folder.
  TableOptions options(std::vector<std::string> paths) const {
    return {.paths = std::move(paths), .cache = (folder_.path() / "built").string()};
  }

  static Row row_of(const TableSource& source, std::int64_t item) {
    Row row;
    Places places;
    std::vector<Row> memory;
    for (const Field& field : source.fields()) {
      memory.emplace_back(field.bytes() / sizeof(float));
    }
    for (Row& part : memory) {
      places.push_back(std::as_writable_bytes(std::span(part)));
    }
    source.read({item}, {&places, 1});
    for (const Row& part : memory) {
      row.insert(row.end(), part.begin(), part.end());
    }
    return row;
  }

  static std::vector<Row> rows_of(const TableSource& source) {
    std::vector<Row> rows;
    for (std::int64_t item = 0; item < source.items(); ++item) {
      rows.push_back(row_of(source, item));
    }
    return rows;
  }

  static bool was_built(const TableSource& source) {
    return nlohmann::json::parse(source.describe())["built"].get<bool>();
  }
  static std::filesystem::path built_file(const TableSource& source) {
    return nlohmann::json::parse(source.describe())["table"].get<std::string>();
  }

  static void expect_error(const TableOptions& wanted, ErrorCode code, const std::string& subject) {
    try {
      const TableSource source(wanted);
      FAIL() << subject;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code) << error.what();
      EXPECT_TRUE(error.subject().ends_with(subject)) << error.what();
    }
  }

  TemporaryFolder folder_;
};

}  // namespace unidle::data::testing
