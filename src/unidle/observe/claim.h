// Whose a record is, where several runs name the same.
#pragma once

#include <filesystem>
#include <functional>

namespace unidle::observe {

/// Calls `make` with `asked`, and where that throws kUsage, since a record is there already, with names beside it
/// ("asked-2", ...) until one is free. Throws kUsage when the record at `asked` is a finished one, but
/// not in one of several tasks that a launcher started together: the others may have finished first.
void claim(const std::filesystem::path& asked, const std::function<void(const std::filesystem::path&)>& make);

}  // namespace unidle::observe
