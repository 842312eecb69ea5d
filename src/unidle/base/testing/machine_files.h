#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "unidle/base/files.h"

namespace unidle::testing {

/// A test with a temporary folder as the root of a machine (proc/, sys/, ...).
class MachineFiles : public ::testing::Test {
 protected:
  const std::filesystem::path& root() const { return folder_.path(); }
  /// Writes `text` to `path` below root() and creates its folders.
  void put(const std::string& path, const std::string& text) const {
    make_folders((root() / path).parent_path());
    std::ofstream(root() / path) << text;
  }

 private:
  TemporaryFolder folder_;
};

}  // namespace unidle::testing
