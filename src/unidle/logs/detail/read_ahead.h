// Reads the blocks of a source, each while the previous one is processed.
#pragma once

#include <array>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <mutex>
#include <string_view>
#include <thread>
#include <vector>

#include "unidle/logs/source.h"

namespace unidle::logs::detail {

/// For use by one thread. For a file of more than one block it reads on a second thread of its own. Memory: two blocks,
/// whatever the size of the source.
class ReadAhead {
 public:
  /// `room`: how many bytes of a block may be carried over to the next. The source must outlive this object and must
  /// not be used by others while it lives.
  ReadAhead(Source& source, std::size_t room) : source_(source), room_(room) {}
  ~ReadAhead();
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;

  /// Replaces `bytes`, the unread rest of the last block, by this rest followed by the next block; valid until the next
  /// call. False at the end. Throws what the source throws. REQUIRES: bytes.size() <= room.
  bool next(std::string_view& bytes);

 private:
  struct Block {
    std::vector<char> bytes;  // data starts at room_
    std::size_t size = 0;
    bool filled = false;
    std::exception_ptr error;
  };
  void fill(Block& block) noexcept;
  void run();
  void wait_for(Block& block);

  Source& source_;
  std::size_t room_;
  std::array<Block, 2> blocks_;
  std::size_t at_ = 0;    // index of the next block to return
  Block* out_ = nullptr;  // the returned block; nullptr before the first
  std::mutex mutex_;      // guards stop_ and `filled`, which decides who owns a block
  std::condition_variable changed_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace unidle::logs::detail
