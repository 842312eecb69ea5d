#include "unidle/record/detail/pages.h"

#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <new>
#include <vector>

namespace unidle::record {

namespace {

// Source: "Database File Format" of SQLite's documentation, sections 1.3 to 1.6 and 2.1. Whatever is not as it says
// ends the reading.
constexpr std::size_t kHeaderBytes = 100;
constexpr int kDeepest = 8;
constexpr int kMostPages = 256;
constexpr std::uint64_t kMostPayloadBytes = 1 << 20;

enum class Kind : std::uint8_t { kIndexInterior = 2, kTableInterior = 5, kIndexLeaf = 10, kTableLeaf = 13 };

/// What is not as it should be.
struct Unexpected {};

void require(bool holds) {
  if (!holds) {
    throw Unexpected();
  }
}

/// Bytes that are taken from the front; never beyond their end.
class Cursor {
 public:
  Cursor(std::string_view bytes, std::size_t at) : rest_(bytes.substr(std::min(at, bytes.size()))) {
    require(at <= bytes.size());
  }
  std::uint64_t number(std::size_t bytes) {
    std::uint64_t value = 0;
    for (const char c : take(bytes)) {
      value = value << 8U | static_cast<unsigned char>(c);
    }
    return value;
  }
  /// Seven bits a byte, the highest first; of a ninth byte all eight.
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (int i = 0; i < 8; ++i) {
      const std::uint64_t byte = number(1);
      value = value << 7U | (byte & 0x7fU);
      if ((byte & 0x80U) == 0) {
        return value;
      }
    }
    return value << 8U | number(1);
  }
  std::string_view take(std::size_t bytes) {
    require(bytes <= rest_.size());
    const std::string_view taken = rest_.substr(0, bytes);
    rest_.remove_prefix(bytes);
    return taken;
  }

 private:
  std::string_view rest_;
};

/// The columns of a row: text and whole numbers as text; others empty.
std::vector<std::string> columns_of(std::string_view payload) {
  Cursor sizes(payload, 0);
  const std::uint64_t header = sizes.varint();
  require(header <= payload.size());
  Cursor types(payload.substr(0, header), 0);
  types.varint();
  Cursor values(payload, header);
  std::vector<std::string> columns;
  for (std::uint64_t used = 1; used < header;) {
    const std::uint64_t type = types.varint();
    used += type < 0x80 ? 1 : type < 0x4000 ? 2 : type < 0x200000 ? 3 : header;
    static constexpr std::size_t kBytes[] = {0, 1, 2, 3, 4, 6, 8, 8, 0, 0};
    if (type >= 12) {
      columns.emplace_back(values.take((type - 12) / 2));
    } else {
      require(type < std::size(kBytes));
      columns.push_back(type == 9                ? "1"
                        : type >= 1 && type <= 6 ? std::to_string(values.number(kBytes[type]))
                                                 : std::string(values.take(kBytes[type])));
    }
  }
  return columns;
}

class Pages {
 public:
  using Row = std::function<void(const std::vector<std::string>& columns)>;

  explicit Pages(int file) : file_(file) {
    std::string header(kHeaderBytes, '\0');
    read(header, 0);
    page_bytes_ = Cursor(header, 16).number(2);
    page_bytes_ = page_bytes_ == 1 ? 65536 : page_bytes_;
    usable_ = page_bytes_ - Cursor(header, 20).number(1);
    const std::uint64_t encoding = Cursor(header, 56).number(4);
    require(page_bytes_ >= 512 && usable_ >= 480 && usable_ <= page_bytes_ && encoding == 1);
  }

  void each_row(std::uint64_t root, const Row& row, int depth = 0) {
    require(depth < kDeepest);
    const std::string page = read_page(root);
    const std::size_t begin = root == 1 ? kHeaderBytes : 0;
    const auto kind = static_cast<Kind>(Cursor(page, begin).number(1));
    const bool leaf = kind == Kind::kIndexLeaf || kind == Kind::kTableLeaf;
    const bool table = kind == Kind::kTableInterior || kind == Kind::kTableLeaf;
    require(leaf || table || kind == Kind::kIndexInterior);
    const std::uint64_t cells = Cursor(page, begin + 3).number(2);
    Cursor places(page, begin + (leaf ? 8 : 12));
    for (std::uint64_t i = 0; i < cells; ++i) {
      Cursor cell(std::string_view(page).substr(0, usable_), places.number(2));
      if (!leaf) {
        each_row(cell.number(4), row, depth + 1);
      }
      if (leaf || !table) {
        row(columns_of(payload_of(cell, table)));
      }
    }
    if (!leaf) {
      each_row(Cursor(page, begin + 8).number(4), row, depth + 1);
    }
  }

 private:
  void read(std::string& into, std::uint64_t at) const {
    require(::pread(file_, into.data(), into.size(), static_cast<off_t>(at)) == static_cast<ssize_t>(into.size()));
  }

  std::string read_page(std::uint64_t number) {
    require(number >= 1 && ++pages_read_ <= kMostPages);
    std::string page(page_bytes_, '\0');
    read(page, (number - 1) * page_bytes_);
    return page;
  }

  /// What a page has no room for lies on pages of its own, each of which names the next.
  std::string payload_of(Cursor& cell, bool table) {
    const std::uint64_t bytes = cell.varint();
    require(bytes <= kMostPayloadBytes);
    if (table) {
      cell.varint();  // the rowid
    }
    const std::uint64_t most = table ? usable_ - 35 : (usable_ - 12) * 64 / 255 - 23;
    const std::uint64_t least = (usable_ - 12) * 32 / 255 - 23;
    const std::uint64_t fitting = least + (bytes - std::min(bytes, least)) % (usable_ - 4);
    const std::uint64_t here = bytes <= most ? bytes : fitting <= most ? fitting : least;
    std::string payload(cell.take(here));
    for (std::uint64_t next = here < bytes ? cell.number(4) : 0; payload.size() < bytes;) {
      const std::string page = read_page(next);
      Cursor rest(page, 0);
      next = rest.number(4);
      payload += rest.take(std::min<std::uint64_t>(usable_ - 4, bytes - payload.size()));
    }
    return payload;
  }

  int file_;
  std::uint64_t page_bytes_ = 0;
  std::uint64_t usable_ = 0;  // of a page
  int pages_read_ = 0;
};

std::uint64_t root_of(Pages& pages, std::string_view table) {
  std::uint64_t root = 0;
  pages.each_row(1, [&](const std::vector<std::string>& columns) {
    require(columns.size() >= 4);  // type, name, table, root page
    if (columns[0] == "table" && columns[1] == table) {
      root = std::stoull(columns[3]);
    }
  });
  return root;
}

}  // namespace

std::optional<std::map<std::string, std::string>> rows_of_table(int file, std::string_view table) try {
  Pages pages(file);
  std::map<std::string, std::string> rows;
  pages.each_row(root_of(pages, table), [&](const std::vector<std::string>& columns) {
    require(columns.size() >= 2 && rows.emplace(columns[0], columns[1]).second);
  });
  return rows;
} catch (const Unexpected&) {
  return std::nullopt;
} catch (const std::exception&) {  // no memory, or a root page that is no number
  return std::nullopt;
}

}  // namespace unidle::record
