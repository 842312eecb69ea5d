#include "workloads/recsys/ratings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>

#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/base/numbers.h"
#include "unidle/data/random.h"
#include "workloads/recsys/table_files.h"

namespace unidle::workloads::recsys {

namespace {

constexpr int kAgeGroups = 7;
constexpr int kClickStars = 4;
constexpr double kValidationShare = 0.2;

std::vector<std::string> split_at(std::string_view text, char at) {
  std::vector<std::string> parts;
  while (true) {
    const std::size_t end = std::min(text.find(at), text.size());
    parts.emplace_back(text.substr(0, end));
    if (end == text.size()) {
      return parts;
    }
    text.remove_prefix(end + 1);
  }
}

/// The lines after the header of a tab-separated file, each with `columns` cells.
class Lines {
 public:
  Lines(std::filesystem::path path, std::size_t columns)
      : path_(std::move(path)), columns_(columns), text_(read_file(path_)), left_(text_) {
    next();
  }
  bool next() {
    if (left_.empty()) {
      return false;
    }
    const std::size_t end = std::min(left_.find('\n'), left_.size());
    cells_ = split_at(left_.substr(0, end), '\t');
    left_.remove_prefix(std::min(end + 1, left_.size()));
    ++line_;
    if (cells_.size() != columns_) {
      fail(fmt::format("has {} cells; expected {}", cells_.size(), columns_));
    }
    return true;
  }
  const std::string& text(std::size_t column) const { return cells_[column]; }
  std::int64_t number(std::size_t column) const {
    constexpr double kMost = 0x1p53;  // above this, a double does not represent every integer
    const auto value = parse_number<double>(cells_[column]);
    if (!value || std::abs(*value) > kMost) {
      fail(fmt::format("expected a number, found '{}'", cells_[column]));
    }
    return static_cast<std::int64_t>(*value);
  }
  int small_number(std::size_t column) const {
    const std::int64_t value = number(column);
    if (value != static_cast<int>(value)) {
      fail(fmt::format("expected a smaller number, found {}", value));
    }
    return static_cast<int>(value);
  }

 private:
  [[noreturn]] void fail(std::string what) const {
    throw Error(ErrorCode::kInput, fmt::format("{}:{}", path_.string(), line_), std::move(what));
  }

  std::filesystem::path path_;
  std::size_t columns_;
  std::string text_;
  std::string_view left_;
  std::vector<std::string> cells_;
  std::int64_t line_ = 0;
};

/// Statistics over a group of ratings; ratings can be removed again.
struct Tally {
  double count = 0;
  double stars = 0;
  std::array<double, 5> of{};

  void add(int rating, double times = 1) {
    count += times;
    stars += times * rating;
    of[static_cast<std::size_t>(rating - 1)] += times;
  }
  /// Shrunk towards the overall mean when there are few ratings.
  double mean(double prior) const { return (stars + 5 * prior) / (count + 5); }
};

struct Statistics {
  Tally all;
  std::map<std::string, Tally> by;  // genre of the film, or gender and occupation of the viewer
};

bool is_validation(const Rating& rating) {
  const std::uint64_t hash =
      data::hash_words({static_cast<std::uint64_t>(rating.user), static_cast<std::uint64_t>(rating.item)});
  return static_cast<double>(hash >> 11) * 0x1p-53 < kValidationShare;
}

/// Names and values of a row, in the same order.
class Row {
 public:
  explicit Row(std::vector<std::string>* names) : names_(names) {}
  void add(std::string_view name, double value) {
    if (names_ != nullptr) {
      names_->emplace_back(name);
    }
    fmt::format_to(std::back_inserter(text_), "{}{:.4g}", text_.empty() ? "" : ",", value);
  }
  void add_one_of(std::string_view name, int chosen, int count) {
    for (int value = 0; value < count; ++value) {
      add(fmt::format("{}_{}", name, value), value == chosen ? 1 : 0);
    }
  }
  void add_tally(std::string_view name, const Tally& tally, double prior) {
    add(fmt::format("{}_count", name), tally.count);
    add(fmt::format("{}_mean", name), tally.mean(prior));
    for (int stars = 1; stars <= 5; ++stars) {
      add(fmt::format("{}_of_{}", name, stars),
          tally.of[static_cast<std::size_t>(stars - 1)] / std::max(1.0, tally.count));
    }
  }
  const std::string& text() const { return text_; }

 private:
  std::vector<std::string>* names_;
  std::string text_;
};

/// All data that rows are made of.
class Table {
 public:
  explicit Table(const Ratings& ratings) : ratings_(ratings) {
    for (const auto& [id, film] : ratings.items) {
      genres_.insert(film.genres.begin(), film.genres.end());
    }
    for (const auto& [id, viewer] : ratings.users) {
      occupations_.insert(viewer.occupation);
    }
    for (const Rating& rating : ratings.ratings) {
      if (!is_validation(rating)) {
        count(rating, 1);
      }
    }
  }

  std::string row(const Rating& rating, std::vector<std::string>* names) {
    const bool counted = !is_validation(rating);
    if (counted) {
      count(rating, -1);  // a row must not see its own rating
    }
    Row row(names);
    add_viewer(row, ratings_.users.at(rating.user));
    add_film(row, ratings_.items.at(rating.item));
    add_time(row, rating.time_s);
    add_statistics(row, "user", users_[rating.user], genres_, /*counts=*/true);
    add_statistics(row, "video", items_[rating.item], viewers(), /*counts=*/false);
    if (counted) {
      count(rating, 1);
    }
    return row.text();
  }

 private:
  void count(const Rating& rating, double times) {
    all_.add(rating.stars, times);
    Statistics& user = users_[rating.user];
    Statistics& item = items_[rating.item];
    user.all.add(rating.stars, times);
    item.all.add(rating.stars, times);
    for (const std::string& genre : ratings_.items.at(rating.item).genres) {
      user.by[genre].add(rating.stars, times);
    }
    const Viewer& viewer = ratings_.users.at(rating.user);
    item.by[viewer.gender].add(rating.stars, times);
    item.by[viewer.occupation].add(rating.stars, times);
  }
  std::set<std::string> viewers() const {
    std::set<std::string> names = occupations_;
    names.insert({"F", "M"});
    return names;
  }
  void add_viewer(Row& row, const Viewer& viewer) const {
    row.add("user_age", viewer.age);
    row.add("user_gender_F", viewer.gender == "F" ? 1 : 0);
    row.add("user_gender_M", viewer.gender == "M" ? 1 : 0);
    for (const std::string& occupation : occupations_) {
      row.add("user_occupation_" + occupation, viewer.occupation == occupation ? 1 : 0);
    }
    row.add_one_of("user_age_group", std::clamp(viewer.age / 10 - 1, 0, kAgeGroups - 1), kAgeGroups);
  }
  void add_film(Row& row, const Film& film) const {
    row.add("video_year", film.year);
    for (const std::string& genre : genres_) {
      row.add("video_genre_" + genre, film.genres.contains(genre) ? 1 : 0);
    }
  }
  static void add_time(Row& row, std::int64_t time_s) {
    row.add_one_of("hour", static_cast<int>(time_s / 3600 % 24), 24);
    row.add_one_of("weekday", static_cast<int>((time_s / 86400 + 4) % 7), 7);  // 1970 began on a Thursday
  }
  void add_statistics(Row& row, std::string_view name, Statistics& statistics, const std::set<std::string>& kinds,
                      bool counts) const {
    const double prior = all_.stars / std::max(1.0, all_.count);
    const double mean = statistics.all.mean(prior);
    row.add_tally(name, statistics.all, prior);
    for (const std::string& kind : kinds) {
      row.add(fmt::format("{}_mean_{}", name, kind), statistics.by[kind].mean(mean));
      if (counts) {
        row.add(fmt::format("{}_share_{}", name, kind),
                statistics.by[kind].count / std::max(1.0, statistics.all.count));
      }
    }
  }

  const Ratings& ratings_;
  std::set<std::string> genres_;
  std::set<std::string> occupations_;
  std::map<std::int64_t, Statistics> users_;
  std::map<std::int64_t, Statistics> items_;
  Tally all_;
};

}  // namespace

Ratings read_ratings(const std::filesystem::path& folder) {
  Ratings ratings;
  for (Lines lines(folder / "ml-100k.user", 5); lines.next();) {
    ratings.users[lines.number(0)] = {lines.small_number(1), lines.text(2), lines.text(3)};
  }
  for (Lines lines(folder / "ml-100k.item", 4); lines.next();) {
    Film& film = ratings.items[lines.number(0)];
    film.year = parse_number<int>(lines.text(2)).value_or(0);
    for (const std::string& genre : split_at(lines.text(3), ' ')) {
      if (!genre.empty()) {
        film.genres.insert(genre);
      }
    }
  }
  const std::filesystem::path path = folder / "ml-100k.inter";
  for (Lines lines(path, 4); lines.next();) {
    const Rating rating{lines.number(0), lines.number(1), lines.small_number(2), lines.number(3)};
    if (!ratings.users.contains(rating.user) || !ratings.items.contains(rating.item) || rating.stars < 1 ||
        rating.stars > 5) {
      throw Error(ErrorCode::kInput, path.string(),
                  fmt::format("viewer {} and film {} with {} stars are not of the other files", rating.user,
                              rating.item, rating.stars));
    }
    ratings.ratings.push_back(rating);
  }
  return ratings;
}

std::int64_t write_ratings(const Ratings& ratings, const std::filesystem::path& folder, int parts) {
  if (ratings.ratings.empty()) {
    throw Error(ErrorCode::kInput, folder.string(), "there are no ratings to write");
  }
  Table table(ratings);
  std::vector<std::string> names;
  table.row(ratings.ratings.front(), &names);
  const auto rows = static_cast<std::int64_t>(ratings.ratings.size());
  PartWriter writer(folder, names, rows, parts);
  for (const Rating& rating : ratings.ratings) {
    writer.add({.user = rating.user,
                .video = rating.item,
                .click = rating.stars >= kClickStars,
                .play_time_ms = std::int64_t{1000} << rating.stars,
                .validation = is_validation(rating)},
               table.row(rating, nullptr));
  }
  writer.close();
  return rows;
}

}  // namespace unidle::workloads::recsys
