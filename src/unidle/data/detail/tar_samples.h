// Members of tar archives that belong together, as WebDataset writes them, and what their names say they hold.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "unidle/data/detail/npy.h"
#include "unidle/data/detail/tar_index.h"

namespace unidle::data::detail {

/// What is behind the first point of a member's name: its last part says what the member holds, as "jpg" of "left.jpg".
bool is_picture_suffix(std::string_view suffix);  // jpg, jpeg, png, webp
bool is_tensor_suffix(std::string_view suffix);   // npy
bool is_whole_suffix(std::string_view suffix);    // cls, cls2, class, count, index, inx, id
bool is_json_suffix(std::string_view suffix);     // json, jsn
/// The parts before the last one: "left" of "left.jpg".
std::string_view stem_of(std::string_view suffix);

/// Members that follow each other and have the same name up to the first point of its last part.
struct TarSample {
  std::string key;
  std::vector<std::pair<std::string, TarMember>> members;  // by suffix, in small letters

  /// That of the first suffix that there is.
  const TarMember* find(const std::vector<std::string>& suffixes) const;
};

/// Gives the samples of one archive one after the other; returns how many members belong to none. Throws kInput with
/// "archive:member" for one that is there twice.
std::size_t for_each_sample(std::vector<TarMember> members, const std::string& archive,
                            const std::function<void(const TarSample&)>& take);

/// Archives, and the *.tar of folders in the natural order of their names. Throws kInput for a folder without.
std::vector<std::string> find_archives(const std::vector<std::string>& paths);

/// Text without blanks and line ends around it.
std::string_view trimmed(std::span<const std::byte> bytes);
/// All of the text. Throws kInput naming `subject` when it is none.
std::int64_t whole_number(std::span<const std::byte> bytes, const std::string& subject);
/// Of an npy file that is whole and has its rows one after the other; throws kInput naming `subject` otherwise. `start`
/// are the first of its `bytes`.
NpyHeader tensor_header(std::span<const std::byte> start, std::uint64_t bytes, const std::string& subject);
/// The first values of that file, as many as `to` has room for, in the byte order of this machine.
void copy_tensor(const NpyHeader& header, std::span<const std::byte> file, std::span<std::byte> to);

}  // namespace unidle::data::detail
