// The blocks of a source, each read while the one before it is looked at.
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

/// For one thread; a second one of its own reads, where the source is a file of more than one block. Memory: two
/// blocks, whatever the size of the source.
class ReadAhead {
 public:
  /// `room`: how much of a block may be kept for the next. The source must outlive this, and belongs to it until then.
  ReadAhead(Source& source, std::size_t room) : source_(source), room_(room) {}
  ~ReadAhead();
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;

  /// `bytes`, what is left of the last block, and behind it the next one, until the next call; false at the end. Throws
  /// what the source throws. REQUIRES: bytes.size() <= room.
  bool next(std::string_view& bytes);

 private:
  struct Block {
    std::vector<char> bytes;  // from room_ on what was read
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
  std::size_t at_ = 0;    // of the block to hand out next
  Block* out_ = nullptr;  // handed out; nullptr before the first
  std::mutex mutex_;      // for stop_ and for `filled`, which says whose a block is
  std::condition_variable changed_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace unidle::logs::detail
