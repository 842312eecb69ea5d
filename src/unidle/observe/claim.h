// Picks a free folder when the requested record exists.
#pragma once

#include <filesystem>
#include <functional>

namespace unidle::observe {

/// Calls `make` with `asked`; if it throws kUsage because a record exists, tries "asked-2", "asked-3", ... until one is
/// free. Throws kUsage when the record at `asked` is finished, except in one of several tasks that a launcher started
/// together: another task may have finished first.
void claim(const std::filesystem::path& asked, const std::function<void(const std::filesystem::path&)>& make);

}  // namespace unidle::observe
