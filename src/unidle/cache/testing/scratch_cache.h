// A temporary cache, and entries whose content identifies their key.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "unidle/base/files.h"
#include "unidle/base/testing/failing_disk.h"
#include "unidle/base/testing/fake_clock.h"
#include "unidle/cache/store.h"

namespace unidle::cache::testing {

inline Key key_number(std::uint64_t number) {
  return KeyBuilder().integer("number", static_cast<std::int64_t>(number)).finish();
}

/// Two arrays determined by this number: float32 of [count] and int64 of [].
inline std::vector<Tensor> numbered(std::uint64_t number, std::size_t count = 100) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    values[i] = static_cast<float>(number * 31 + i);
  }
  const std::int64_t whole = static_cast<std::int64_t>(number);
  std::vector<Tensor> tensors;
  tensors.push_back(make_tensor<float>("values", DType::kF32, {count}, values));
  tensors.push_back(make_tensor<std::int64_t>("number", DType::kI64, {}, std::span(&whole, 1)));
  return tensors;
}

inline bool is_numbered(const Entry& entry, std::uint64_t number, std::size_t count = 100) {
  const std::vector<Tensor> expected = numbered(number, count);
  if (entry.tensors().size() != expected.size()) {
    return false;
  }
  for (const Tensor& tensor : expected) {
    const TensorView* found = entry.find(tensor.name);
    if (found == nullptr || found->dtype != tensor.dtype || found->shape != tensor.shape ||
        !std::equal(tensor.data.begin(), tensor.data.end(), found->data.begin(), found->data.end())) {
      return false;
    }
  }
  return true;
}

/// Bytes of numbered(): head and two arrays. KeepsEntriesForLaterProcesses checks it.
constexpr std::uint64_t kEntryBytes = 192 + 448 + 64;

/// Changes one byte.
inline void change_byte(const std::filesystem::path& path, std::size_t at) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(static_cast<std::streamoff>(at));
  const int before = file.get();
  file.seekp(static_cast<std::streamoff>(at));
  file.put(static_cast<char>(before ^ 0x41));
}

class ScratchCache : public ::testing::Test {
 protected:
  std::filesystem::path folder() const { return folder_.path() / "cache"; }
  std::filesystem::path blob(const Key& key) const {
    return folder() / "v1/blobs" / key.hex().substr(0, 2) / key.hex();
  }
  std::filesystem::path index_file() const { return folder() / "v1/index-2.db"; }
  Options options() {
    Options options;
    options.path = folder();
    options.durability = Durability::kProcess;
    options.disk = &disk_;
    options.clock = &clock_;
    options.tell = [this](std::string_view text) { told_.emplace_back(text); };
    return options;
  }
  static std::size_t files_in(const std::filesystem::path& path) {
    std::error_code none;
    std::size_t count = 0;
    for (std::filesystem::directory_iterator entry(path, none), end; !none && entry != end; entry.increment(none)) {
      ++count;
    }
    return count;
  }

  unidle::testing::FailingDisk disk_;
  unidle::testing::FakeClock clock_;
  std::vector<std::string> told_;

 private:
  TemporaryFolder folder_{"unidle-cache-test"};
};

}  // namespace unidle::cache::testing
