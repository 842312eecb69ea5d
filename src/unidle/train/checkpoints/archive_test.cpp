#include "unidle/train/checkpoints/archive.h"

#include <caffe2/serialize/inline_container.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/serialization/pickle.h>

#include <functional>
#include <sstream>
#include <string_view>

namespace unidle::train {
namespace {

using namespace std::string_view_literals;

constexpr std::string_view kLength = "K\x4d"sv;  // 77 in the pickle: the byte count and the tensor's size

std::string saved(const at::Tensor& tensor) {
  c10::impl::GenericDict dict(c10::StringType::get(), c10::TensorType::get());
  dict.insert("w", tensor);
  const std::vector<char> bytes = torch::jit::pickle_save(dict);
  return {bytes.begin(), bytes.end()};
}

/// The same archive with an edited pickle.
std::string rewritten(const std::string& file, const std::function<void(std::string&)>& change) {
  std::istringstream stream(file);
  caffe2::serialize::PyTorchStreamReader reader(&stream);
  std::string made;
  caffe2::serialize::PyTorchStreamWriter writer([&](const void* bytes, std::size_t size) {
    made.append(static_cast<const char*>(bytes), size);
    return size;
  });
  for (const char* name : {"data/0", "data.pkl"}) {
    const auto [bytes, size] = reader.getRecord(name);
    std::string record(static_cast<const char*>(bytes.get()), size);
    if (name == "data.pkl"sv) {
      change(record);
    }
    writer.writeRecord(name, record.data(), record.size());
  }
  writer.writeEndOfFile();
  return made;
}

TEST(Archive, OfATensorThatReachesBeyondItsBytesIsRefused) {
  const std::string file = saved(at::arange(77));
  const auto same = [](std::string&) {};
  EXPECT_TRUE(at::equal(read_archive(rewritten(file, same)).at("w").toTensor(), at::arange(77)));
  const auto longer = [](std::string& text) {
    int changed = 0;
    for (std::size_t at = text.find(kLength); at != std::string::npos; at = text.find(kLength, at + 2), ++changed) {
      text[at + 1] = '\x4e';
    }
    EXPECT_GE(changed, 2);
  };
  EXPECT_THROW(read_archive(rewritten(file, longer)), std::exception);
  const auto larger = [](std::string& text) { text[text.rfind(kLength) + 1] = '\x7d'; };  // of the tensor only
  EXPECT_THROW(read_archive(rewritten(file, larger)), std::exception);
  EXPECT_TRUE(read_archive(saved(at::zeros({0, 3}))).at("w").toTensor().sizes() == at::IntArrayRef({0, 3}));
  EXPECT_TRUE(at::equal(read_archive(saved(at::arange(6).view({2, 3}).t())).at("w").toTensor(),
                        at::arange(6).view({2, 3}).t()));
}

}  // namespace
}  // namespace unidle::train
