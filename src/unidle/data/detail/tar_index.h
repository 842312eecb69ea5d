// Indexes the files of a tar archive for random access.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "unidle/data/detail/open_files.h"

namespace unidle::data::detail {

struct TarMember {
  std::string name;
  std::uint64_t offset = 0;  // of its data in the archive
  std::uint64_t bytes = 0;
};

/// Lists the regular files of an archive in order: ustar, GNU and pax, with long names and large sizes. Links
/// have the data of the files to which they lead. Skips directories. Throws kInput with the archive for damage,
/// truncation, compression, and links out of the archive.
std::vector<TarMember> read_tar(OpenFiles& files, std::size_t file);

/// The same through an index file beside the archive, NAME.tar.unidle-index, used while the archive's size and time are
/// unchanged. If it cannot be written, the archive is read again next time.
std::vector<TarMember> tar_members(OpenFiles& files, std::size_t file);

}  // namespace unidle::data::detail
