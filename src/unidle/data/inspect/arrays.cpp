#include <algorithm>

#include "unidle/base/error.h"
#include "unidle/data/inspect/cells.h"
#include "unidle/data/inspect/kinds.h"
#include "unidle/data/sources/npy.h"

namespace unidle::data::inspect_kinds {

namespace {

std::vector<std::string> sample_of(const Source& source, std::int64_t item) {
  std::vector<std::vector<std::byte>> memory;
  for (const Field& field : source.fields()) {
    memory.emplace_back(field.bytes());
  }
  Places places(memory.begin(), memory.end());
  source.read({item}, {&places, 1});
  std::vector<std::string> cells;
  for (std::size_t field = 0; field < memory.size(); ++field) {
    cells.push_back(values_text(source.fields()[field].dtype, memory[field]));
  }
  return cells;
}

}  // namespace

Inspection npy(const std::string& path, const InspectOptions& options) {
  Inspection result;
  result.kind = "npy";
  try {
    const std::vector<std::string> names = NpySource::find_fields(path);
    for (const std::string& name : names) {  // separately, so that each one's problem is reported
      try {
        const NpySource source(path, {name});
        const Field& field = source.fields().front();
        result.columns.push_back({name, array_type(field.dtype, field.shape), {}});
      } catch (const Error& error) {
        result.add_problem(error);
        result.columns.push_back({name, "unknown", {}});
      }
    }
    if (!result.problems.empty()) {
      return result;
    }
    const NpySource source(path, names);
    result.rows = source.items();
    for (std::int64_t item = 0; item < std::min(options.sample_rows, result.rows); ++item) {
      result.sample.push_back(sample_of(source, item));
    }
  } catch (const Error& error) {
    result.add_problem(error);
  }
  return result;
}

}  // namespace unidle::data::inspect_kinds
