// The rows of a small table, read from the pages of a SQLite file as they lie: SQLite itself parses the whole schema
// for every file that it opens, which is most of the time of a list of ten thousand.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace unidle::record {

/// First and second column of a table WITHOUT ROWID whose columns are text. `file` is an open one that nobody writes
/// to, in a rollback journal's mode; it may be damaged. Nothing where the file does not look as it should, has no such
/// table, or the table is larger than is worth it: SQLite then says what it is. Never throws.
std::optional<std::map<std::string, std::string>> rows_of_table(int file, std::string_view table);

}  // namespace unidle::record
