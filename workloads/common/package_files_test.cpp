#include "workloads/common/package_files.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "unidle/base/files.h"

namespace unidle::workloads {
namespace {

namespace fs = std::filesystem;

const fs::path kFile = "no_package_of_this_name/data.csv";

class PackageFiles : public ::testing::Test {
 protected:
  ~PackageFiles() override { ::unsetenv("UNIDLE_PYTHON"); }

  /// A program in place of Python: reports the file, or nothing.
  fs::path python(const fs::path& file) {
    const fs::path program = folder_.path() / "python";
    std::ofstream(program) << "#!/bin/sh\necho " << file.string() << "\n";
    fs::permissions(program, fs::perms::owner_all);
    return program;
  }

  TemporaryFolder folder_;
};

TEST_F(PackageFiles, AreThoseOfThePythonThatIsNamed) {
  EXPECT_FALSE(find_package_file(kFile));
  const fs::path file = folder_.path() / "data.csv";
  ::setenv("UNIDLE_PYTHON", python(file).c_str(), 1);
  EXPECT_EQ(find_package_file(kFile), file);
}

TEST_F(PackageFiles, APythonThatHasThemNotIsNoError) {
  ::setenv("UNIDLE_PYTHON", python("").c_str(), 1);
  EXPECT_FALSE(find_package_file(kFile));
  ::setenv("UNIDLE_PYTHON", "/nowhere/python", 1);
  EXPECT_FALSE(find_package_file(kFile));
}

}  // namespace
}  // namespace unidle::workloads
