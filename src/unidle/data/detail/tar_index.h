// Where the files of a tar archive lie, so that they can be read at random.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "unidle/data/detail/open_files.h"

namespace unidle::data::detail {

struct TarMember {
  std::string name;
  std::uint64_t offset = 0;  // of its bytes in the archive
  std::uint64_t bytes = 0;
};

/// The plain files of an archive, in its order: ustar, GNU and pax, with long names and large sizes. Directories and
/// links are passed over. Throws kInput, naming the archive, for damage, an archive that is cut off, and for one that
/// is compressed.
std::vector<TarMember> read_tar(OpenFiles& files, std::size_t file);

/// The same through an index beside the archive, NAME.tar.unidle-index, which is used as long as size and time of the
/// archive are what they were. Where it cannot be written, the archive is read again the next time.
std::vector<TarMember> tar_members(OpenFiles& files, std::size_t file);

}  // namespace unidle::data::detail
