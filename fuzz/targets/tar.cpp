// Tar archives: their headers, and what their members promise. The index beside an archive gives the same members.
// Inspecting one refuses nothing but what cannot be read as an archive.
#include "unidle/data/sources/tar.h"
#include <vector>
#include "fuzz.h"
#include "unidle/base/characters.h"
#include "unidle/data/detail/tar_index.h"
#include "unidle/data/detail/tar_samples.h"
#include "unidle/data/inspect/inspection.h"

namespace unidle::fuzz::targets {

namespace {

constexpr std::int64_t kMostSamples = 16;
constexpr std::size_t kMostSampleBytes = 1 << 20;  // more only takes time

void read_samples(const data::TarSource& source) {
  std::vector<std::vector<std::byte>> memory;
  data::Places places;
  for (const data::Field& field : source.fields()) {
    if (field.bytes() > kMostSampleBytes) {
      return;
    }
    memory.emplace_back(field.bytes());
  }
  for (std::vector<std::byte>& part : memory) {
    places.emplace_back(part);
  }
  for (std::int64_t item = 0; item < std::min(kMostSamples, source.items()); ++item) {
    may_refuse([&] { source.read({item, 0, 0}, {&places, 1}); });
  }
}

void run_tar(std::string_view bytes) {
  const std::filesystem::path path = put("tar/a.tar", bytes);
  std::filesystem::remove(path.string() + ".unidle-index");
  may_refuse([&] {
    data::detail::OpenFiles files;
    const std::size_t file = files.add(path.string());
    const std::vector<data::detail::TarMember> members = data::detail::tar_members(files, file);
    const std::vector<data::detail::TarMember> again = data::detail::tar_members(files, file);
    require(members.size() == again.size());
    for (std::size_t i = 0; i < members.size(); ++i) {
      require(members[i].name == again[i].name && members[i].offset == again[i].offset);
      require(members[i].offset + members[i].bytes <= bytes.size());
    }
  });
  may_refuse([&] {
    data::detail::OpenFiles files;
    bool pictures = false;  // they are decoded whole, which only takes time: the target `image` has them
    for (const data::detail::TarMember& member : data::detail::read_tar(files, files.add(path.string()))) {
      const std::string suffix = lower(std::filesystem::path(member.name).extension().string());
      pictures = pictures || data::detail::is_picture_suffix(std::string_view(suffix).substr(suffix.empty() ? 0 : 1));
    }
    if (!pictures) {
      const data::Inspection found = data::inspect({path.string()}, {});
      for (const auto& cells : found.sample) {
        require(cells.size() == found.columns.size());
      }
    }
  });
  may_refuse([&] { read_samples(data::TarSource({.paths = {path.string()}, .pictures = {.size = 4}})); });
}

}  // namespace

const Target& tar() {
  static const Target kTarget = {"tar", run_tar};
  return kTarget;
}

}  // namespace unidle::fuzz::targets
