// Stands in for libFuzzer where the compiler has none: runs the corpus, then mutations of it.
//   PROGRAM TARGET [-runs=N] [-max_total_time=SECONDS] CORPUS_FOLDER_OR_FILE...
// Blind to coverage, but it needs nothing. On a crash the input lies in ./crash-input.
#include <algorithm>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "fuzz.h"

namespace {

std::string current;

void keep_input(int signal) {
  if (std::FILE* file = std::fopen("crash-input", "wb")) {
    std::fwrite(current.data(), 1, current.size(), file);
    std::fclose(file);
  }
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

void run(const std::string& input) {
  current = input;
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(input.data()), input.size());
}

std::string read(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class Mutator {
 public:
  explicit Mutator(const std::vector<std::string>& corpus) : corpus_(corpus) {}

  std::string next() {
    std::string text = corpus_[below(corpus_.size())];
    for (std::size_t i = 0, count = 1 + below(8); i < count; ++i) {
      mutate(text);
    }
    return text;
  }

 private:
  std::size_t below(std::size_t bound) { return bound == 0 ? 0 : random_() % bound; }

  void mutate(std::string& text) {
    static constexpr const char* kPieces[] = {"\n", "\r",           ",",  "nan", "-1", "1e308", "9999999999999999999",
                                              "%",  " [N/A]",       "\"", "{",   "[",  "}",     "]",
                                              "|",  "\xe8\xbd\xae", "/",  ":",   "#",  "\0x",   "0"};
    const std::size_t at = below(text.size() + 1);
    const std::size_t size = std::min(below(32), text.size() - at);
    switch (below(6)) {
      case 0: text.insert(at, 1, static_cast<char>(random_())); break;
      case 1: text.erase(at, size); break;
      case 2: text.insert(at, text.substr(below(text.size() + 1), below(64))); break;
      case 3: text.insert(at, kPieces[below(std::size(kPieces))]); break;
      case 4: {
        const std::string& other = corpus_[below(corpus_.size())];
        text = text.substr(0, at) + other.substr(below(other.size() + 1));
        break;
      }
      default:
        if (at < text.size()) {
          text[at] = static_cast<char>(text[at] ^ (1 << below(8)));
        }
    }
  }

  const std::vector<std::string>& corpus_;
  std::mt19937_64 random_{20250101};
};

long option(const char* text, const char* name) {
  const std::size_t size = std::strlen(name);
  long value = -1;
  if (std::strncmp(text, name, size) == 0) {
    std::from_chars(text + size, text + std::strlen(text), value);
  }
  return value;
}

}  // namespace

int main(int argc, char** argv) {
  LLVMFuzzerInitialize(&argc, &argv);
  long seconds = 60;
  long runs = -1;
  std::vector<std::string> corpus = {""};
  for (int i = 1; i < argc; ++i) {
    if (argv[i][0] == '-') {
      seconds = std::max(option(argv[i], "-max_total_time="), argv[i][1] == 'm' ? 0L : seconds);
      runs = std::max(option(argv[i], "-runs="), runs);
    } else if (std::filesystem::is_directory(argv[i])) {
      for (const auto& entry : std::filesystem::directory_iterator(argv[i])) {
        corpus.push_back(read(entry.path()));
      }
    } else {
      corpus.push_back(read(argv[i]));
    }
  }
  for (const int signal : {SIGSEGV, SIGABRT, SIGFPE, SIGBUS}) {
    std::signal(signal, keep_input);
  }
  for (const std::string& input : corpus) {
    run(input);
  }
  Mutator mutator(corpus);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  long done = 0;
  while (runs < 0 ? std::chrono::steady_clock::now() < end : done < runs) {
    run(mutator.next());
    ++done;
  }
  std::printf("%zu seeds and %ld mutations: no crash\n", corpus.size(), done);
  return 0;
}
