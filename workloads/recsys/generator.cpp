#include "workloads/recsys/generator.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "workloads/recsys/table_files.h"

namespace unidle::workloads::recsys {

namespace {

constexpr std::size_t kTastes = 8;
using Taste = std::array<double, kTastes>;

constexpr const char* kUserNumbers[] = {"follow_user_num", "fans_user_num", "friend_user_num", "register_days"};
constexpr const char* kUserFlags[] = {"is_lowactive_period", "is_live_streamer", "is_video_author"};
struct Choice {
  const char* name;
  int values;
};
constexpr Choice kUserChoices[] = {{"user_active_degree", 4},
                                   {"follow_user_num_range", 8},
                                   {"fans_user_num_range", 9},
                                   {"friend_user_num_range", 7},
                                   {"register_days_range", 7}};
constexpr int kUserCodes = 18;  // onehot_feat0 to onehot_feat17
constexpr const char* kVideoNumbers[] = {"video_type_AD", "video_duration", "server_width", "server_height"};
constexpr Choice kVideoChoice = {"upload_type", 3};
constexpr const char* kVideoCounts[] = {"counts",
                                        "show_cnt",
                                        "show_user_num",
                                        "play_cnt",
                                        "play_user_num",
                                        "play_duration",
                                        "complete_play_cnt",
                                        "complete_play_user_num",
                                        "valid_play_cnt",
                                        "valid_play_user_num",
                                        "long_time_play_cnt",
                                        "long_time_play_user_num",
                                        "short_time_play_cnt",
                                        "short_time_play_user_num",
                                        "play_progress",
                                        "comment_stay_duration",
                                        "like_cnt",
                                        "like_user_num",
                                        "click_like_cnt",
                                        "double_click_cnt",
                                        "cancel_like_cnt",
                                        "cancel_like_user_num",
                                        "comment_cnt",
                                        "comment_user_num",
                                        "direct_comment_cnt",
                                        "reply_comment_cnt",
                                        "delete_comment_cnt",
                                        "delete_comment_user_num",
                                        "comment_like_cnt",
                                        "comment_like_user_num",
                                        "follow_cnt",
                                        "follow_user_num",
                                        "cancel_follow_cnt",
                                        "cancel_follow_user_num",
                                        "share_cnt",
                                        "share_user_num",
                                        "download_cnt",
                                        "download_user_num",
                                        "report_cnt",
                                        "report_user_num",
                                        "reduce_similar_cnt",
                                        "reduce_similar_user_num",
                                        "collect_cnt",
                                        "collect_user_num",
                                        "cancel_collect_cnt",
                                        "cancel_collect_user_num",
                                        "direct_comment_user_num",
                                        "reply_comment_user_num",
                                        "share_all_cnt",
                                        "share_all_user_num",
                                        "outsite_share_all_cnt"};
constexpr Choice kRowChoices[] = {{"tab", 15}, {"hour", 24}};

void add_choice_names(std::vector<std::string>& names, const Choice& choice) {
  for (int value = 0; value < choice.values; ++value) {
    names.push_back(fmt::format("{}_{}", choice.name, value));
  }
}

/// In the order in which users, videos and rows write them.
std::vector<std::string> names_of_features() {
  std::vector<std::string> names(std::begin(kUserNumbers), std::end(kUserNumbers));
  names.insert(names.end(), std::begin(kUserFlags), std::end(kUserFlags));
  for (const Choice& choice : kUserChoices) {
    add_choice_names(names, choice);
  }
  for (int code = 0; code < kUserCodes; ++code) {
    names.push_back(fmt::format("onehot_feat{}", code));
  }
  names.insert(names.end(), std::begin(kVideoNumbers), std::end(kVideoNumbers));
  add_choice_names(names, kVideoChoice);
  for (const char* name : kVideoCounts) {
    names.push_back(fmt::format("video_{}", name));
  }
  for (const Choice& choice : kRowChoices) {
    add_choice_names(names, choice);
  }
  return names;
}

/// A user or a video: features that the model sees as text, and hidden properties.
struct Side {
  Taste taste;
  double appeal;     // of a video to all users, or of all videos to a user
  double seconds;    // of a video
  bool validation;   // of a user
  std::string text;  // its features, comma-separated
};

class Maker {
 public:
  explicit Maker(std::uint64_t seed) : random_(seed) {
    for (Taste& weights : mixture_) {
      weights = taste();
    }
  }

  Side user() {
    Side side = hidden();
    side.validation = uniform() < 0.2;
    for (std::size_t number = 0; number < std::size(kUserNumbers); ++number) {
      add(side.text, std::floor(std::exp(3 + seen(side, number))));
    }
    for (std::size_t flag = 0; flag < std::size(kUserFlags); ++flag) {
      add(side.text, seen(side, 10 + flag) > 1 ? 1 : 0);
    }
    for (std::size_t choice = 0; choice < std::size(kUserChoices); ++choice) {
      add_choice(side.text, kUserChoices[choice].values, seen(side, 20 + choice));
    }
    for (std::size_t code = 0; code < kUserCodes; ++code) {
      add(side.text, std::floor(10 + 3 * seen(side, 30 + code)));
    }
    return side;
  }

  Side video() {
    Side side = hidden();
    side.seconds = std::exp(3 + 0.6 * normal());
    add(side.text, uniform() < 0.05 ? 1 : 0);
    add(side.text, std::floor(1000 * side.seconds));
    add(side.text, uniform() < 0.8 ? 720 : 1080);
    add(side.text, uniform() < 0.8 ? 1280 : 1920);
    add_choice(side.text, kVideoChoice.values, seen(side, 50));
    for (std::size_t count = 0; count < std::size(kVideoCounts); ++count) {
      add(side.text, std::floor(std::exp(4 + side.appeal + 0.8 * seen(side, 60 + count))));
    }
    return side;
  }

  Interaction interaction(const Side& user, const Side& video) {
    double match = 0;
    for (std::size_t i = 0; i < kTastes; ++i) {
      match += user.taste[i] * video.taste[i];
    }
    const double liking = match / std::sqrt(static_cast<double>(kTastes)) + 0.5 * (user.appeal + video.appeal);
    Interaction row;
    row.click = uniform() < 1 / (1 + std::exp(-1.5 * liking));
    const double share = 1 / (1 + std::exp(-(liking + 0.7 * normal())));
    row.play_time_ms = static_cast<std::int64_t>(1000 * video.seconds * share * (row.click ? 1.5 : 0.5));
    row.validation = user.validation;
    return row;
  }

  std::string row_text() {
    std::string text;
    for (const Choice& choice : kRowChoices) {
      add_choice(text, choice.values, normal());
    }
    return text;
  }

  std::size_t below(std::size_t count) { return std::uniform_int_distribution<std::size_t>(0, count - 1)(random_); }

 private:
  double normal() { return std::normal_distribution<double>()(random_); }
  double uniform() { return std::uniform_real_distribution<double>()(random_); }
  Taste taste() {
    Taste made;
    for (double& value : made) {
      value = normal();
    }
    return made;
  }
  Side hidden() { return {.taste = taste(), .appeal = normal(), .seconds = 0, .validation = false, .text = {}}; }
  /// The observed value of feature `number`, which depends on the hidden taste; roughly standard normal.
  double seen(const Side& side, std::size_t number) {
    const Taste& weights = mixture_[number % mixture_.size()];
    double sum = 0;
    for (std::size_t i = 0; i < kTastes; ++i) {
      sum += weights[i] * side.taste[i];
    }
    return 0.9 * sum / std::sqrt(static_cast<double>(kTastes)) + 0.3 * normal();
  }
  static void add(std::string& text, double value) { fmt::format_to(std::back_inserter(text), "{:.6g},", value); }
  /// Adds one of `values` categories, by the quantile of `seen` in the normal distribution.
  static void add_choice(std::string& text, int values, double seen) {
    const double share = 0.5 * std::erfc(-seen / std::sqrt(2.0));
    const int chosen = std::min(values - 1, static_cast<int>(share * values));
    for (int value = 0; value < values; ++value) {
      text += value == chosen ? "1," : "0,";
    }
  }

  std::mt19937_64 random_;
  std::array<Taste, 128> mixture_{};
};

}  // namespace

void write_generated(const std::filesystem::path& folder, std::int64_t rows, int parts, std::uint64_t seed) {
  constexpr std::int64_t kRowsPerUser = 100;
  constexpr std::int64_t kRowsPerVideo = 20;
  constexpr std::int64_t kMostSides = 50000;
  Maker maker(seed);
  std::vector<Side> users;
  std::vector<Side> videos;
  for (std::int64_t i = 0; i < std::clamp<std::int64_t>(rows / kRowsPerUser, 10, kMostSides); ++i) {
    users.push_back(maker.user());
  }
  for (std::int64_t i = 0; i < std::clamp<std::int64_t>(rows / kRowsPerVideo, 10, kMostSides); ++i) {
    videos.push_back(maker.video());
  }
  PartWriter writer(folder, names_of_features(), rows, parts);
  for (std::int64_t i = 0; i < rows; ++i) {
    const std::size_t user = maker.below(users.size());
    const std::size_t video = maker.below(videos.size());
    Interaction row = maker.interaction(users[user], videos[video]);
    row.user = static_cast<std::int64_t>(user);
    row.video = static_cast<std::int64_t>(video);
    std::string text = users[user].text + videos[video].text + maker.row_text();
    text.pop_back();  // removes the last comma
    writer.add(row, text);
  }
  writer.close();
}

}  // namespace unidle::workloads::recsys
