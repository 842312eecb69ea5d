#include "unidle/data/tables/build.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>

#include "unidle/base/error.h"
#include "unidle/data/tables/chunks.h"
#include "unidle/data/tables/plan.h"
#include "unidle/data/tables/row_parser.h"
#include "unidle/telemetry/host.h"

namespace unidle::data::tables {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

/// Identifies the state of a file, or of the text converted from it, to detect changes.
json fingerprint(const std::string& path, const TableOptions& options) {
  constexpr std::uint64_t kEnd = 64 * 1024;
  const TextOfFile* made = text_of(path, options.texts);
  detail::OpenFiles files;
  files.add(made != nullptr ? made->text : path);
  const std::uint64_t bytes = files.bytes(0);
  const timespec changed = files.changed(0);
  std::vector<std::byte> ends(static_cast<std::size_t>(std::min(bytes, 2 * kEnd)));
  const std::size_t head = std::min<std::size_t>(ends.size(), kEnd);
  files.read(0, 0, std::span(ends).first(head));
  files.read(0, bytes - (ends.size() - head), std::span(ends).subspan(head));
  return {{"path", fs::absolute(path).lexically_normal().string()},
          {"bytes", bytes},
          {"changed_s", changed.tv_sec},
          {"changed_ns", changed.tv_nsec},
          {"ends", XXH3_64bits(ends.data(), ends.size())}};
}

/// All input files: those of the table and of each side table.
struct TableFiles {
  explicit TableFiles(const TableOptions& options) : rows(find_parts(options.paths)) {
    for (const TableJoin& join : options.joins) {
      joins.push_back(find_parts(join.paths));
    }
  }
  std::vector<std::string> rows;
  std::vector<std::vector<std::string>> joins;
};

json fingerprints(const TableFiles& files, const TableOptions& options) {
  json all = json::array();
  const auto add = [&](const std::vector<std::string>& some) {
    for (const std::string& file : some) {
      all.push_back(fingerprint(file, options));
    }
  };
  add(files.rows);
  std::for_each(files.joins.begin(), files.joins.end(), add);
  return all;
}

json full_paths(const std::vector<std::string>& files) {
  json paths = json::array();
  for (const std::string& file : files) {
    paths.push_back(fs::absolute(file).lexically_normal().string());
  }
  return paths;
}

/// What a built table depends on besides the contents of its files.
json key_of(const TableOptions& options, const TableFiles& files) {
  json joins = json::array();
  for (std::size_t i = 0; i < files.joins.size(); ++i) {
    joins.push_back({{"key", options.joins[i].key}, {"files", full_paths(files.joins[i])}});
  }
  const TableSplit& split = options.split;
  return {{"files", full_paths(files.rows)},
          {"joins", joins},
          {"features", options.features ? json(*options.features) : json()},
          {"targets", options.targets},
          {"categorical", options.categorical},
          {"validation", split.validation},
          {"split_seed", split.seed},
          {"split_column", split.column},
          {"split_values", split.values},
          {"fills_blanks", options.fill != TableFill::kNan},
          {"missing", options.missing},
          {"decimal", static_cast<int>(options.decimal)},
          {"delimiter", static_cast<int>(options.delimiter)}};
}

fs::path path_of(const TableOptions& options, const TableFiles& files, const json& key) {
  const std::vector<std::uint8_t> bytes = json::to_cbor(key);
  const std::uint64_t hash = XXH3_64bits(bytes.data(), bytes.size());
  const fs::path folder = options.cache.empty() ? home_folder() / "tables" : fs::path(options.cache);
  return folder / fmt::format("{}-{:016x}.rows", fs::path(files.rows.front()).stem().string(), hash);
}

/// Parses all files with several threads. Chunks enter the row file in table order, so that the file, or the reported
/// error, is the same for any number of threads.
class Build {
 public:
  Build(const TableOptions& options, const CsvLayout& layout, const TablePlan& plan, std::span<const SideTable> sides,
        RowFileWriter& writer)
      : options_(options),
        layout_(layout),
        plan_(plan),
        sides_(sides),
        writer_(writer),
        chunks_(layout),
        facts_(plan.rows.width()),
        dictionaries_(plan.rows.width()),
        unmatched_(sides.size()) {}

  void run(int threads) {
    {
      std::vector<std::jthread> workers;
      for (int i = 1; i < threads; ++i) {
        workers.emplace_back([this] { work(); });
      }
      work();
    }
    if (failure_) {
      std::rethrow_exception(failure_);
    }
  }

  std::vector<TableColumn> columns() const {
    std::vector<TableColumn> columns;
    for (std::size_t place = 0; place < width(); ++place) {
      const ColumnFacts& facts = facts_[place];
      TableColumn column;
      column.name = plan_.names[place];
      column.type = plan_.rows.categories[place] ? "text" : facts.whole ? "integer" : "float";
      column.missing = facts.missing;
      column.mean = facts.mean;
      column.deviation = facts.counted > 0 ? std::sqrt(facts.squares / static_cast<double>(facts.counted)) : 0;
      column.categories = dictionaries_[place].texts();
      columns.push_back(std::move(column));
    }
    return columns;
  }

  std::vector<JoinedTable> joins() const {
    std::vector<JoinedTable> joins;
    for (std::size_t i = 0; i < sides_.size(); ++i) {
      joins.push_back({options_.joins[i].key, static_cast<std::int64_t>(sides_[i].rows()), unmatched_[i]});
    }
    return joins;
  }

 private:
  std::size_t width() const { return plan_.rows.width(); }

  void work() {
    Chunk chunk;
    try {
      RowParser parser(layout_, plan_.rows, options_.split, sides_);
      std::vector<std::vector<std::uint32_t>> numbers(width());  // table-wide numbers of this parser's categories
      while (chunks_.next(chunk)) {
        try {
          parser.parse(chunk);
        } catch (const RowProblem& problem) {
          throw Error(ErrorCode::kInput, chunks_.place(chunk.part, problem.offset), problem.what);
        }
        if (!commit(chunk, parser, numbers)) {
          return;
        }
      }
    } catch (...) {
      fail(chunk.number);
    }
  }

  /// Of several failures, keeps the first in table order.
  void fail(std::int64_t number) {
    const std::lock_guard lock(mutex_);
    if (!failure_ || number < failed_) {
      failure_ = std::current_exception();
      failed_ = number;
    }
    chunks_.stop();
    turn_changed_.notify_all();
  }

  /// Returns false when the build has failed.
  bool commit(const Chunk& chunk, RowParser& parser, std::vector<std::vector<std::uint32_t>>& numbers) {
    std::unique_lock lock(mutex_);
    turn_changed_.wait(lock, [&] { return turn_ == chunk.number || failure_; });
    if (failure_) {
      return false;
    }
    for (std::size_t i = 0; i < sides_.size(); ++i) {
      unmatched_[i] += parser.unmatched()[i];
    }
    for (std::size_t place = 0; place < width(); ++place) {
      facts_[place].add(parser.facts()[place]);
      if (plan_.rows.categories[place]) {
        renumber(place, parser, numbers[place]);
      }
    }
    writer_.append({parser.values(), static_cast<std::size_t>(parser.rows()) * width()});
    writer_.append_validation(parser.validation());
    done_bytes_ += chunk.text.size();
    if (options_.progress) {
      options_.progress(std::min(done_bytes_, chunks_.bytes()), chunks_.bytes());
    }
    ++turn_;
    turn_changed_.notify_all();
    return true;
  }

  void renumber(std::size_t place, RowParser& parser, std::vector<std::uint32_t>& numbers) {
    const std::vector<std::string>& texts = parser.dictionaries()[place].texts();
    for (std::size_t i = numbers.size(); i < texts.size(); ++i) {
      numbers.push_back(dictionaries_[place].number_of(texts[i]));
    }
    if (dictionaries_[place].size() > kMostCategories) {  // each thread's own dictionary may have stayed below it
      throw Error(ErrorCode::kInput, layout_.parts.front().path,
                  fmt::format("column {}: has more than {} different texts", plan_.names[place], kMostCategories));
    }
    float* value = parser.values() + place;
    for (std::int64_t row = 0; row < parser.rows(); ++row, value += width()) {
      *value = static_cast<float>(numbers[static_cast<std::size_t>(*value)]);
    }
  }

  const TableOptions& options_;
  const CsvLayout& layout_;
  const TablePlan& plan_;
  std::span<const SideTable> sides_;
  RowFileWriter& writer_;
  Chunks chunks_;
  std::mutex mutex_;  // guards all members below
  std::condition_variable turn_changed_;
  std::int64_t turn_ = 0;
  std::uint64_t done_bytes_ = 0;
  std::vector<ColumnFacts> facts_;
  std::vector<Dictionary> dictionaries_;
  std::vector<std::int64_t> unmatched_;
  std::exception_ptr failure_;
  std::int64_t failed_ = 0;
};

void refuse_changes(const json& before, const json& after) {
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (before[i] != after[i]) {
      throw Error(ErrorCode::kInput, before[i].at("path").get<std::string>(), "changed while it was read",
                  "open it again once nobody writes to it");
    }
  }
}

/// Reads all files into the rows of `writer`, and their statistics into `facts`.
void read_rows(const TableOptions& options, const TableFiles& files, const fs::path& path, Disk& disk,
               std::optional<RowFileWriter>& writer, RowFileFacts& facts) {
  const CsvLayout layout = read_layout(files.rows, options.delimiter, options.texts);
  std::vector<CsvLayout> side_layouts;
  for (const std::vector<std::string>& join : files.joins) {
    side_layouts.push_back(read_layout(join, options.delimiter, options.texts));
  }
  const TablePlan plan = make_plan(options, layout, side_layouts);
  std::vector<SideTable> sides;
  for (std::size_t i = 0; i < side_layouts.size(); ++i) {
    sides.emplace_back(side_layouts[i], plan.joins[i], options.split);
  }
  writer.emplace(path, plan.rows.width(), disk);
  Build build(options, layout, plan, sides, *writer);
  build.run(options.threads > 0 ? options.threads : telemetry::usable_cpus());
  facts.features = plan.features;
  facts.columns = build.columns();
  facts.left_out = plan.left_out;
  facts.joins = build.joins();
}

void build(const TableOptions& options, const TableFiles& files, const json& key, const fs::path& path, Disk& disk) {
  RowFileFacts facts{key, fingerprints(files, options), 0, {}, {}, {}};
  std::optional<RowFileWriter> writer;
  try {
    read_rows(options, files, path, disk, writer, facts);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kInput) {
      refuse_changes(facts.inputs, fingerprints(files, options));  // a changed file may have caused the error
    }
    throw;
  }
  refuse_changes(facts.inputs, fingerprints(files, options));
  writer->finish(facts);
}

/// Opens the row file if it is valid for this key; otherwise returns null.
std::unique_ptr<RowFile> open_built(const fs::path& path, const json& key, const json& inputs, Disk& disk) {
  std::unique_ptr<RowFile> file = RowFile::open(path, disk);
  return file && file->facts().key == key && file->facts().inputs == inputs ? std::move(file) : nullptr;
}

/// The lock held while a table is built; released when the process ends.
UniqueFd lock_for(const fs::path& path) {
  const std::string name = path.string() + ".lock";
  UniqueFd fd(::open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  if (!fd) {
    throw system_error(ErrorCode::kIo, name, "cannot be created", errno);
  }
  int result = 0;
  do {
    result = ::flock(fd.get(), LOCK_EX);
  } while (result != 0 && errno == EINTR);
  if (result != 0) {
    throw system_error(ErrorCode::kIo, name, "cannot be locked", errno);
  }
  return fd;
}

}  // namespace

std::unique_ptr<RowFile> open_or_build(const TableOptions& options, Disk& disk, bool& built) {
  const TableFiles files(options);
  const json key = key_of(options, files);
  const fs::path path = path_of(options, files, key);
  built = false;
  std::unique_ptr<RowFile> file = open_built(path, key, fingerprints(files, options), disk);
  if (file) {
    return file;
  }
  make_folders(path.parent_path(), disk);
  const UniqueFd lock = lock_for(path);
  constexpr int kTries = 3;
  file = open_built(path, key, fingerprints(files, options), disk);
  // Retries when another process removed the file before it was opened.
  for (int tries = 0; !file && tries < kTries; ++tries) {
    build(options, files, key, path, disk);
    built = true;
    file = RowFile::open(path, disk);
  }
  if (!file) {
    throw Error(ErrorCode::kIo, path.string(), "was removed or damaged right after it was built",
                "check whether something cleans that folder");
  }
  return file;
}

}  // namespace unidle::data::tables
