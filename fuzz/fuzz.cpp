#include "fuzz.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "unidle/base/handle.h"

namespace unidle::fuzz {

namespace fs = std::filesystem;

namespace {

const Target* chosen = nullptr;
constexpr const char* kVariable = "UNIDLE_FUZZ_TARGET";

const Target* find_target(std::string_view name) {
  const auto& all = all_targets();
  const auto found = std::find_if(all.begin(), all.end(), [&](const Target* target) { return target->name == name; });
  return found == all.end() ? nullptr : *found;
}

[[noreturn]] void explain() {
  for (const Target* target : all_targets()) {
    std::printf("%s\n", std::string(target->name).c_str());
  }
  std::exit(2);
}

}  // namespace

void require(bool holds) {
  if (!holds) {
    std::abort();
  }
}

void require_plain(const Error& failure, std::initializer_list<ErrorCode> codes) {
  const bool expected = std::find(codes.begin(), codes.end(), failure.code()) != codes.end();
  const bool one_line = std::string_view(failure.what()).find('\n') == std::string_view::npos;
  if (!expected || !one_line) {
    std::fprintf(stderr, "%s: %s\n", std::string(to_string(failure.code())).c_str(), failure.what());
    std::abort();
  }
}

const fs::path& scratch_folder() {
  static const TemporaryFolder kFolder("unidle-fuzz");
  return kFolder.path();
}

fs::path put(const std::string& name, std::string_view bytes) {
  fs::path path = scratch_folder() / name;
  make_folders(path.parent_path());
  // No rename and no sync, as write_file_atomic() would do: nobody else looks, and it happens a thousand times a
  // second.
  const UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  require(static_cast<bool>(file) &&
          ::write(file.get(), bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
  return path;
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const auto [line, rest] = split(text, "\n");
    lines.push_back(line);
    text = rest;
  }
  return lines;
}

std::pair<std::string_view, std::string_view> split(std::string_view text, std::string_view separator) {
  const std::size_t at = text.find(separator);
  return at == std::string_view::npos ? std::pair(text, std::string_view())
                                      : std::pair(text.substr(0, at), text.substr(at + separator.size()));
}

}  // namespace unidle::fuzz

/// The first argument names the target. It is handed on in the environment, because libFuzzer starts itself again
/// with arguments of its own.
extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  using namespace unidle::fuzz;
  if (*argc > 1 && (*argv)[1][0] != '-' && find_target((*argv)[1]) != nullptr) {
    ::setenv(kVariable, (*argv)[1], 1);
    std::rotate(*argv + 1, *argv + 2, *argv + *argc);
    (*argv)[--*argc] = nullptr;
  }
  const char* name = std::getenv(kVariable);
  chosen = find_target(name != nullptr ? name : "");
  if (chosen == nullptr) {
    explain();
  }
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  unidle::fuzz::chosen->run({reinterpret_cast<const char*>(data), size});
  return 0;
}
