// What the fuzz targets share. A target reads bytes as some reader of ours does; README.md lists them all.
#pragma once

#include <filesystem>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/logs/source.h"

namespace unidle::fuzz {

/// One reader of foreign bytes. `run` aborts, or lets an exception out, where the reader breaks its word.
struct Target {
  std::string_view name;
  void (*run)(std::string_view bytes);
};

/// One a file in targets/; by file name.
const std::vector<const Target*>& all_targets();

/// Aborts, so that a fuzzer keeps the input.
void require(bool holds);

/// Aborts unless `failure` has one of the codes and fits in one line, as the command line prints it.
void require_plain(const Error& failure, std::initializer_list<ErrorCode> codes);

/// Calls `read`, which may refuse its input with an Error of one of the codes, and with nothing else.
template <typename Read>
void may_refuse(Read read, std::initializer_list<ErrorCode> codes = {ErrorCode::kInput}) {
  try {
    read();
  } catch (const Error& failure) {
    require_plain(failure, codes);
  }
}

/// Calls `read` with the bytes as a source named "input". An Error is about that name and nothing else.
template <typename Read>
void read_source(std::string_view bytes, Read read) {
  may_refuse([&] {
    try {
      logs::Source source("input", bytes);
      read(source);
    } catch (const Error& failure) {
      require(failure.subject() == "input");
      throw;
    }
  });
}

/// A folder of this process for readers that want files; the same for the whole process, gone at its end.
const std::filesystem::path& scratch_folder();

/// Puts `bytes` into the file NAME of the scratch folder, folders included, and returns its path.
std::filesystem::path put(const std::string& name, std::string_view bytes);

/// The lines of a text, without their ends.
std::vector<std::string_view> lines_of(std::string_view text);

/// The text up to the first `separator` and what lies behind it.
std::pair<std::string_view, std::string_view> split(std::string_view text, std::string_view separator);

}  // namespace unidle::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv);
