// Groups the members of tar archives into samples, as WebDataset does, and interprets their suffixes.
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

/// The suffix is the member's name after its first dot; its last part gives the type, such as "jpg" in "left.jpg".
bool is_picture_suffix(std::string_view suffix);  // jpg, jpeg, png, webp
bool is_tensor_suffix(std::string_view suffix);   // npy
bool is_whole_suffix(std::string_view suffix);    // cls, cls2, class, count, index, inx, id
bool is_json_suffix(std::string_view suffix);     // json, jsn
/// The parts before the last one: "left" in "left.jpg".
std::string_view stem_of(std::string_view suffix);

/// Consecutive members with the same name up to the first dot of its last path component.
struct TarSample {
  std::string key;
  std::vector<std::pair<std::string, TarMember>> members;  // by suffix, in lower case

  /// Returns the member with the first suffix that exists.
  const TarMember* find(const std::vector<std::string>& suffixes) const;
};

/// Calls back with each sample of one archive; returns how many members belong to none. Throws kInput with
/// "archive:member" for a duplicate.
std::size_t for_each_sample(std::vector<TarMember> members, const std::string& archive,
                            const std::function<void(const TarSample&)>& take);

/// Returns archives, and the *.tar of folders in natural order. Throws kInput for a folder without any.
std::vector<std::string> find_archives(const std::vector<std::string>& paths);

/// The text without surrounding whitespace.
std::string_view trimmed(std::span<const std::byte> bytes);
/// Parses the whole text. Throws kInput with `subject` if it is not a whole number.
std::int64_t whole_number(std::span<const std::byte> bytes, const std::string& subject);
/// The header of a complete npy file in C order; throws kInput with `subject` otherwise. `start` holds the first of its
/// `bytes`.
NpyHeader tensor_header(std::span<const std::byte> start, std::uint64_t bytes, const std::string& subject);
/// Copies the first values of the file, as many as fit into `to`, in this machine's byte order.
void copy_tensor(const NpyHeader& header, std::span<const std::byte> file, std::span<std::byte> to);

}  // namespace unidle::data::detail
