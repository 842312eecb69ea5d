#include "unidle/train/checkpoints/archive.h"

#include <caffe2/serialize/inline_container.h>
#include <torch/csrc/jit/serialization/unpickler.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace unidle::train {

namespace {

/// Sizes of records by address.
using RecordSizes = std::map<const void*, std::size_t>;

/// Checks bounds: torch's unpickler takes a tensor's offset and sizes from the pickle without comparing them with the
/// bytes of the record.
void check_lies_within(const at::Tensor& tensor, const RecordSizes& records) {
  const auto refuse = [] { throw std::runtime_error("a tensor reaches beyond its bytes"); };
  if (!tensor.defined()) {
    return;
  }
  if (tensor.layout() != at::kStrided || tensor.is_quantized() || !tensor.is_cpu()) {
    refuse();
  }
  std::int64_t last = tensor.storage_offset();
  bool bad = last < 0;
  for (std::int64_t axis = 0; axis < tensor.dim(); ++axis) {
    const std::int64_t size = tensor.size(axis);
    const std::int64_t stride = tensor.stride(axis);
    if (size == 0 && !bad) {
      return;
    }
    std::int64_t step = 0;
    bad = bad || size < 0 || stride < 0 || __builtin_mul_overflow(size - 1, stride, &step) ||
          __builtin_add_overflow(last, step, &last);
  }
  const auto record = records.find(tensor.storage().data());
  bad = bad || record == records.end() ||
        static_cast<std::uint64_t>(last) >= record->second / static_cast<std::size_t>(tensor.element_size());
  if (bad) {
    refuse();
  }
}

/// torch.save(model.state_dict()) pickles an OrderedDict with an attribute; libtorch's unpickler supports neither.
/// Edits the pickle so that it builds a plain dict, after the name of the class (later tensors refer to it), and ends
/// before the attribute with a tuple of both. Returns whether the pickle was of that kind.
bool make_plain_dict(std::string& pickled) {
  using namespace std::string_view_literals;
  constexpr std::string_view kMade = "ccollections\nOrderedDict\nq\0)R"sv;  // GLOBAL, BINPUT, EMPTY_TUPLE, REDUCE
  constexpr std::size_t kHeader = 2;                                        // PROTO
  if (pickled.compare(kHeader, kMade.size(), kMade) != 0) {
    return false;
  }
  pickled.replace(kHeader + kMade.size() - 2, 2, "}");  // EMPTY_DICT
  pickled.pop_back();                                   // STOP
  const std::size_t name = pickled.rfind("X\x09\0\0\0_metadata"sv);
  // The dict of attributes begins with EMPTY_DICT and its memo index, of one byte or four.
  for (const auto& [put, length] : {std::pair{'q', std::size_t{2}}, std::pair{'r', std::size_t{5}}}) {
    if (name != std::string::npos && name > length && pickled[name - length] == put &&
        pickled[name - length - 1] == '}') {
      pickled.resize(name - length - 1);
      break;
    }
  }
  pickled += "\x86.";  // TUPLE2, STOP
  return true;
}

}  // namespace

c10::impl::GenericDict read_archive(const std::string& file) {
  std::istringstream stream(file);
  caffe2::serialize::PyTorchStreamReader archive(&stream);
  const auto [bytes, size] = archive.getRecord("data.pkl");
  std::string pickled(static_cast<const char*>(bytes.get()), size);
  const bool changed = make_plain_dict(pickled);
  std::size_t at = 0;
  RecordSizes records;
  torch::jit::Unpickler unpickler(
      [&](char* to, std::size_t wanted) {
        const std::size_t some = std::min(wanted, pickled.size() - at);
        std::memcpy(to, pickled.data() + at, some);
        at += some;
        return some;
      },
      nullptr, nullptr,
      [&](const std::string& name) {
        auto [record, record_size] = archive.getRecord("data/" + name);
        records[record.get()] = record_size;
        return std::move(record);
      },
      at::Device(at::kCPU));
  const c10::IValue value = unpickler.parse_ivalue();
  value.visit([&](const c10::IValue& part) {
    if (part.isTensor()) {
      check_lies_within(part.toTensor(), records);
    }
    return false;  // continue
  });
  return changed ? value.toTupleRef().elements()[1].toGenericDict() : value.toGenericDict();
}

}  // namespace unidle::train
