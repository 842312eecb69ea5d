#include "unidle/cache/detail/state.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/base/json.h"
#include "unidle/base/log.h"
#include "unidle/cache/detail/blob_folder.h"

namespace unidle::cache::detail {

namespace fs = std::filesystem;

namespace {

constexpr std::int64_t kFormat = 1;

/// The file that identifies a cache, beside the folder of its format.
fs::path settings_file(const fs::path& root) { return root / "unidle-cache.json"; }

std::uint64_t hot_bytes(const Options& options) {
  return options.max_bytes ? std::min(options.hot_bytes, *options.max_bytes / 16) : options.hot_bytes;
}

}  // namespace

State::State(const Options& options)
    : options_(options),
      folder_(options.path / fmt::format("v{}", kFormat)),
      clock_(options.clock != nullptr ? *options.clock : system_clock()),
      files_(folder_, options.disk != nullptr ? *options.disk : system_disk()),
      max_bytes_(options.max_bytes),
      hot_(hot_bytes(options), options.hot_entries) {
  const fs::file_status status = status_of(options_.path);
  if (fs::exists(status) && !fs::is_directory(status)) {
    throw Error(ErrorCode::kUsage, options_.path.string(), "is not a folder", "name the folder of a cache");
  }
  if ((options_.read_only || !options_.create) && !fs::exists(status_of(folder_))) {
    throw Error(ErrorCode::kInput, options_.path.string(), "holds no cache",
                fs::exists(status) ? "name the folder of a cache" : "no such folder");
  }
  read_settings();
  if (options_.read_only) {
    return;
  }
  try {
    open_for_writing();
    writable_ = true;
  } catch (const Error& error) {
    warn_once("open", fmt::format("the cache cannot be written, and goes on without storing: {}", error.what()));
  }
}

void State::open_for_writing() {
  files_.make();
  write_settings();
  board_.emplace(folder_ / "board");
  claims_.emplace(folder_ / "locks");
  evictions_.emplace(folder_ / "locks");
  pressure_ = board_->pressure();
  files_.sweep();
}

void State::read_settings() {
  const auto text = try_read_file(settings_file(options_.path));
  if (!text) {
    return;
  }
  const nlohmann::json settings = parse_json(*text);
  if (const auto least = whole_in(settings, "least_format"); least && *least > kFormat) {
    throw Error(ErrorCode::kUsage, options_.path.string(), fmt::format("is a cache of format {}", *least),
                "use a later unidle, or another folder");
  }
  if (const auto bytes = whole_in(settings, "max_bytes"); bytes && *bytes >= 0 && !max_bytes_) {
    max_bytes_ = static_cast<std::uint64_t>(*bytes);
  }
}

void State::write_settings() {
  const fs::path file = settings_file(options_.path);
  if (!options_.max_bytes && fs::exists(file)) {
    return;
  }
  nlohmann::json settings = {{"what", "unidle feature cache"}, {"format", kFormat}, {"least_format", kFormat}};
  settings["max_bytes"] = max_bytes_ ? nlohmann::json(*max_bytes_) : nlohmann::json();
  const std::string text = json_text(settings) + "\n";
  if (try_read_file(file) != text) {
    write_file_atomic(file, text);
  }
}

void State::warn_once(const std::string& kind, const std::string& text) {
  const std::scoped_lock lock(told_mutex_);
  if (told_.insert(kind).second) {
    options_.tell ? options_.tell(text) : say(text);
  }
}

void State::heed_pressure() {
  const std::uint32_t now = board_->pressure();
  if (pressure_.exchange(now, std::memory_order_relaxed) != now) {
    hot_.release();
  }
}

std::optional<Entry> State::get(const Key& key) {
  std::uint32_t generation = 0;
  if (board_) {
    if (board_->pressure() != pressure_.load(std::memory_order_relaxed)) {
      heed_pressure();
    }
    generation = board_->generation(key);
    board_->count_hit(key);
  }
  if (auto entry = hot_.find(key, generation)) {
    return entry;
  }
  auto entry = accept(key, files_.open(key));
  if (entry) {
    hot_.insert(key, *entry, generation);
  }
  return entry;
}

std::optional<Entry> State::peek(const Key& key) { return accept(key, files_.open(key)); }

std::optional<Entry> State::accept(const Key& key, OpenedBlob opened) {
  switch (opened.state) {
    case OpenedBlob::State::kGood: return Entry(std::move(opened.held));
    case OpenedBlob::State::kDamaged: set_aside(key, opened.reason); return std::nullopt;
    case OpenedBlob::State::kUnreadable:
      warn_once("read", fmt::format("{}: {}; it is computed instead", files_.path(key).string(), opened.reason));
      return std::nullopt;
    case OpenedBlob::State::kMissing:
    case OpenedBlob::State::kNewer: return std::nullopt;
  }
  return std::nullopt;
}

std::vector<Key> State::keys(std::size_t part) const {
  const BlobFolder folder(files_, part);
  return {folder.keys().begin(), folder.keys().end()};
}

void State::set_aside(const Key& key, const std::string& reason) {
  if (!writable_) {
    warn_once("damaged", fmt::format("{} {}, and is not used", files_.path(key).string(), reason));
    return;
  }
  // Another process may have replaced the blob meanwhile.
  if (files_.open(key).state == OpenedBlob::State::kDamaged && files_.set_aside(key)) {
    warn_once("damaged",
              fmt::format("{} {}: it was set aside, and is computed again", files_.path(key).string(), reason));
    board_->bump_generation(key);
    forget(key);
  }
}

void State::forget(const Key& key) {
  try {
    with_index([&](Index& index) { index.forget(key); });
  } catch (const Error&) {  // NOLINT(bugprone-empty-catch): a row without its blob is harmless
  }
}

Removal State::remove(const Key& key) {
  const Outcome locked = evictions_->try_lock(key);
  if (locked == Outcome::kBusy) {
    return Removal::kHeld;  // somebody is about to replace its blob
  }
  const RemovalState removed = files_.remove_unheld(key);
  if (locked == Outcome::kTaken) {
    evictions_->unlock(key);
  }
  if (removed == RemovalState::kHeld) {
    board_->raise_pressure();
    return Removal::kHeld;
  }
  board_->bump_generation(key);
  return Removal::kGone;
}

bool State::erase(const Key& key) {
  if (!writable_ || !files_.remove(key)) {
    return false;
  }
  board_->bump_generation(key);
  forget(key);
  return true;
}

bool State::claim(const Key& key, bool wait) {
  {
    std::unique_lock lock(flights_mutex_);
    while (flights_.contains(key)) {
      if (!wait) {
        return false;
      }
      flights_changed_.wait(lock);
    }
    flights_.insert(key);
  }
  const Outcome outcome = !claims_ ? Outcome::kUnsupported : wait ? claims_->wait(key, {}) : claims_->try_lock(key);
  if (outcome == Outcome::kUnsupported && claims_) {
    warn_once("locks", fmt::format("{}: there are no locks here; several processes may compute the same entry",
                                   options_.path.string()));
  }
  if (outcome == Outcome::kBusy) {
    release(key);
    return false;
  }
  return true;
}

void State::release(const Key& key) {
  if (claims_) {
    claims_->unlock(key);
  }
  const std::scoped_lock lock(flights_mutex_);
  flights_.erase(key);
  flights_changed_.notify_all();
}

}  // namespace unidle::cache::detail
