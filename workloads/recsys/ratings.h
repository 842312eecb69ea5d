// Converts MovieLens 100k, as contained in RecBole's package, to a table in KuaiRand's format.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace unidle::workloads::recsys {

struct Rating {
  std::int64_t user;
  std::int64_t item;
  int stars;  // 1 to 5
  std::int64_t time_s;
};

struct Viewer {
  int age = 0;
  std::string gender;
  std::string occupation;
};

struct Film {
  int year = 0;  // 0: unknown
  std::set<std::string> genres;
};

struct Ratings {
  std::vector<Rating> ratings;
  std::map<std::int64_t, Viewer> users;
  std::map<std::int64_t, Film> items;
};

/// Reads ml-100k.inter, .user and .item of a folder. Throws kInput with file and line when their format differs.
Ratings read_ratings(const std::filesystem::path& folder);

/// Writes the ratings as `parts` CSV parts and returns the number of rows. A click is a rating of 4 or 5; the play time
/// encodes the rating, 2^stars seconds, so that its logarithm is nearly linear in it. The 157 features describe the
/// viewer (24, and 7 for age), the film (20), the hour and weekday (31), the viewer's ratings (45) and the film's (30).
/// Statistics use training rows only, without the row itself. A fifth of the rows, by a hash of viewer and film, is for
/// validation.
std::int64_t write_ratings(const Ratings& ratings, const std::filesystem::path& folder, int parts);

}  // namespace unidle::workloads::recsys
