#include "unidle/trace/injection.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include "unidle/base/error.h"
#include "unidle/base/files.h"

namespace unidle::trace {
namespace {

class Injection : public ::testing::Test {
 protected:
  void TearDown() override { ::unsetenv("CUDA_INJECTION64_PATH"); }

  ErrorCode refusal() const {
    try {
      library_to_inject(folder_.path() / "bin");
    } catch (const Error& error) {
      return error.code();
    }
    return ErrorCode::kInternal;
  }

  TemporaryFolder folder_;
};

TEST_F(Injection, TheLibraryLiesBesideThePrograms) {
  EXPECT_EQ(refusal(), ErrorCode::kMissing);
  const std::filesystem::path library = folder_.path() / "lib/libunidle_cupti.so";
  make_folders(library.parent_path());
  write_file_atomic(library, "library");
  EXPECT_EQ(library_to_inject(folder_.path() / "bin"), library);
}

TEST_F(Injection, AnotherToolGoesFirst) {
  ::setenv("CUDA_INJECTION64_PATH", "", 1);
  EXPECT_EQ(refusal(), ErrorCode::kMissing) << "an empty variable is none";
  ::setenv("CUDA_INJECTION64_PATH", "/opt/tool.so", 1);
  EXPECT_EQ(refusal(), ErrorCode::kUsage);
}

}  // namespace
}  // namespace unidle::trace
