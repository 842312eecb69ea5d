#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "unidle/base/files.h"

namespace unidle::testing {

/// A test with a folder that stands for the root of a machine (proc/, sys/, ...), empty at first and gone at the end.
class MachineFiles : public ::testing::Test {
 protected:
  const std::filesystem::path& root() const { return folder_.path(); }
  /// Writes `text` to `path` below root(), folders included.
  void put(const std::string& path, const std::string& text) const {
    make_folders((root() / path).parent_path());
    std::ofstream(root() / path) << text;
  }

 private:
  TemporaryFolder folder_;
};

}  // namespace unidle::testing
