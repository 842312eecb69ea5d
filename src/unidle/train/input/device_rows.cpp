#include "unidle/train/input/device_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <sstream>
#include <string>

#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/base/units.h"
#include "unidle/data/loader.h"
#include "unidle/train/input/transfer.h"

namespace unidle::train {

namespace {

constexpr std::uint64_t kBytesAtOnce = 16U << 20;  // of the slots that the rows are read into
constexpr std::int64_t kNumbersAtOnce = 4096;
constexpr double kShareOfMemory = 0.8;  // the rest is for the model

[[noreturn]] void refuse_rows(const std::string& reason) {
  throw Error(ErrorCode::kInput, "data.on_device", "cannot hold this data: " + reason, "set data.on_device: false");
}

void check_rows(const data::Source& source) {
  if (!source.same_every_epoch()) {
    refuse_rows("its samples differ from epoch to epoch");
  }
  if (source.samples_per_item() != 1) {
    refuse_rows("an item of it is several samples");
  }
  for (const data::Field& field : source.fields()) {
    if (field.ragged) {
      refuse_rows(fmt::format("the length of '{}' varies", field.name));
    }
  }
}

std::uint64_t row_bytes(const data::Source& source) {
  std::uint64_t bytes = 0;
  for (const data::Field& field : source.fields()) {
    bytes += field.bytes();
  }
  return std::max<std::uint64_t>(bytes, 1);
}

/// Free memory of the host; 0 when unknown.
std::uint64_t available_bytes() {
  std::istringstream lines(try_read_file(host_root() / "proc/meminfo").value_or(""));
  std::string word;
  while (lines >> word) {
    std::uint64_t kib = 0;
    if (word == "MemAvailable:" && lines >> kib) {
      return kib << 10;
    }
  }
  return 0;
}

/// Checks first, because the host overcommits memory and kills the program later.
void check_fits_host(std::uint64_t bytes) {
  const std::uint64_t available = available_bytes();
  if (available > 0 && static_cast<double>(bytes) > kShareOfMemory * static_cast<double>(available)) {
    throw Error(ErrorCode::kOutOfMemory, "data.on_device",
                fmt::format("the data needs {} of the {} that are free", format_bytes(bytes), format_bytes(available)),
                "set data.on_device: false");
  }
}

/// The signed type of the same size: torch gathers signed integers only, and the bits are the same.
at::ScalarType gathered_type(at::ScalarType type) {
  switch (type) {
    case at::kUInt16: return at::kShort;
    case at::kUInt32: return at::kInt;
    case at::kUInt64: return at::kLong;
    default: return type;
  }
}

}  // namespace

ItemNumbers::ItemNumbers(const data::Source& source)
    : fields_{{"item", data::DType::kI64, {}}}, items_(source.items()), samples_per_item_(source.samples_per_item()) {}

std::int64_t ItemNumbers::grain() const { return samples_per_item_ == 1 ? kNumbersAtOnce : 1; }

std::uint64_t ItemNumbers::read(const data::ItemRequest& request, std::span<const data::Places> samples) const {
  for (const data::Places& places : samples) {
    std::memcpy(places[0].data(), &request.item, sizeof(request.item));
  }
  return 0;
}

std::uint64_t ItemNumbers::gather(std::span<const data::ItemRequest> requests,
                                  std::span<const data::Rows> fields) const {
  for (std::size_t i = 0; i < requests.size(); ++i) {
    std::memcpy(fields[0].at(i).data(), &requests[i].item, sizeof(requests[i].item));
  }
  return 0;
}

DeviceRows::DeviceRows(const data::Source& source, at::Device device, int workers) {
  check_rows(source);
  const std::uint64_t row = row_bytes(source);
  if (device.is_cpu()) {
    check_fits_host(row * static_cast<std::uint64_t>(source.items()));
  }
  const auto batch = static_cast<std::int64_t>(std::max<std::uint64_t>(1, kBytesAtOnce / row));
  data::Loader loader(source, {.batch = std::min(batch, source.items()),
                               .workers = workers,
                               .shuffle = false,
                               .epoch_end = data::EpochEnd::kShort});
  try {
    for (std::int64_t done = 0; done < source.items();) {
      const data::Batch some = loader.next();
      for (std::size_t index = 0; index < source.fields().size(); ++index) {
        const at::Tensor view = field_view(some, source.fields()[index], index);
        if (done == 0) {
          row_types_.push_back(view.scalar_type());
          std::vector<std::int64_t> shape = view.sizes().vec();
          shape[0] = source.items();
          rows_.push_back(at::empty(shape, at::TensorOptions(gathered_type(view.scalar_type())).device(device)));
        }
        rows_[index].narrow(0, done, some.samples()).copy_(view.view(rows_[index].scalar_type()));
      }
      done += some.samples();
    }
  } catch (const c10::OutOfMemoryError&) {
    throw Error(ErrorCode::kOutOfMemory, "data.on_device",
                fmt::format("{} rows of {} bytes do not fit into the device's memory", source.items(), row),
                "set data.on_device: false");
  }
}

std::vector<at::Tensor> DeviceRows::select(const at::Tensor& items) const {
  std::vector<at::Tensor> selected;
  selected.reserve(rows_.size());
  for (std::size_t index = 0; index < rows_.size(); ++index) {
    const at::Tensor rows = rows_[index].index_select(0, items);
    selected.push_back(rows.scalar_type() == row_types_[index] ? rows : rows.view(row_types_[index]));
  }
  return selected;
}

std::uint64_t DeviceRows::bytes() const {
  std::uint64_t bytes = 0;
  for (const at::Tensor& rows : rows_) {
    bytes += rows.nbytes();
  }
  return bytes;
}

}  // namespace unidle::train
