// The script of the fake NVML; fake_nvml.cpp documents its lines.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <mutex>
#include <sstream>
#include <string>
#include <vector>

namespace fake {

constexpr int kSuccess = 0;
constexpr int kInvalidArgument = 2;
constexpr int kNotSupported = 3;
constexpr int kNotFound = 6;
constexpr int kInsufficientSize = 7;
constexpr int kTimeout = 10;
constexpr int kFunctionNotFound = 13;

/// Handles are numbers: GPU i is i + 1, its slice j is kSlice + 64 i + j.
constexpr std::size_t kSlice = 0x10000;

inline std::string prefix_of(const void* device) {
  const auto value = reinterpret_cast<std::size_t>(device);
  if (value >= kSlice) {
    return std::to_string((value - kSlice) / 64) + "/" + std::to_string((value - kSlice) % 64) + ".";
  }
  return std::to_string(value - 1) + ".";
}

/// Blocks until the file `path` exists. Creates PATH.hangs so that a test can wait for the hang.
inline void hang(const std::string& path) {
  const std::ofstream begun(path + ".hangs");
  while (::access(path.c_str(), F_OK) != 0) {
    ::usleep(10'000);
  }
}

struct Script {
  std::mutex mutex;
  std::map<std::string, std::vector<std::string>> answers;
  std::map<std::string, std::size_t> calls;

  void load() {
    answers.clear();
    calls.clear();
    const char* path = std::getenv("UNIDLE_FAKE_NVML_SCRIPT");
    std::ifstream file(path != nullptr ? path : "");
    for (std::string line; std::getline(file, line);) {
      std::istringstream words(line);
      std::string key;
      if (words >> key && key[0] != '#') {
        for (std::string word; words >> word;) {
          answers[key].push_back(word);
        }
      }
    }
  }

  /// Returns the next answer to `key`, preferring the device's own; `result` is the return code. A slice has only its
  /// own.
  std::string next(const void* device, const std::string& key, int& result) {
    const std::lock_guard lock(mutex);
    const std::string own = device != nullptr ? prefix_of(device) + key : key;
    const bool slice = reinterpret_cast<std::size_t>(device) >= kSlice;
    const std::string& used = slice || answers.contains(own) ? own : key;
    const auto found = answers.find(used);
    if (found == answers.end() || found->second.empty()) {
      result = kNotSupported;
      return {};
    }
    const std::size_t call = std::min(calls[used]++, found->second.size() - 1);
    const std::string& answer = found->second[call];
    if (answer.starts_with("hang:")) {
      hang(answer.substr(5));
    }
    result = answer.starts_with("error:") ? std::atoi(answer.c_str() + 6) : kSuccess;
    return answer;
  }

  /// True when all answers to `key` have been given.
  bool spent(const std::string& key) {
    const std::lock_guard lock(mutex);
    const auto found = answers.find(key);
    return found == answers.end() || calls[key] >= found->second.size();
  }
};

extern Script script;

/// "1:2,3:4" -> {{1, 2}, {3, 4}}
inline std::vector<std::vector<unsigned long long>> tuples(const std::string& text) {
  std::vector<std::vector<unsigned long long>> all;
  std::istringstream entries(text == "none" ? "" : text);
  for (std::string entry; std::getline(entries, entry, ',');) {
    auto& numbers = all.emplace_back();
    std::istringstream parts(entry);
    for (std::string part; std::getline(parts, part, ':');) {
      numbers.push_back(std::strtoull(part.c_str(), nullptr, 0));
    }
  }
  return all;
}

template <typename Number>
int number(void* device, const std::string& key, Number* value) {
  int result = 0;
  const std::string answer = script.next(device, key, result);
  if (result == kSuccess) {
    *value = static_cast<Number>(std::strtoull(answer.c_str(), nullptr, 0));
  }
  return result;
}

/// Returns the `index`th number of an answer "a:b:c".
template <typename Number>
int part(void* device, const std::string& key, std::size_t index, Number* value) {
  int result = 0;
  const auto all = tuples(script.next(device, key, result));
  if (result == kSuccess) {
    *value = static_cast<Number>(!all.empty() && index < all[0].size() ? all[0][index] : 0);
  }
  return result;
}

inline int text(void* device, const std::string& key, char* place, unsigned length) {
  int result = 0;
  const std::string answer = script.next(device, key, result);
  if (result == kSuccess) {
    place[std::min<std::size_t>(answer.copy(place, length - 1), length - 1)] = '\0';
  }
  return result;
}

}  // namespace fake
