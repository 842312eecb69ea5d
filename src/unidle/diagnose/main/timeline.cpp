// Writes a timeline as a record: unidle_timeline FILE RECORD [NAME=VALUE ...]
#include <exception>
#include <iostream>
#include <map>
#include <string>

#include "unidle/diagnose/testing/timeline_case.h"

int main(int argc, char** argv) {
  using namespace unidle::diagnose::testing;  // NOLINT(google-build-using-namespace)
  std::map<std::string, std::string> values;
  for (int i = 3; i < argc; ++i) {
    const std::string word = argv[i];
    values[word.substr(0, word.find('='))] = word.substr(word.find('=') + 1);
  }
  if (argc < 3 || values.contains("")) {
    std::cerr << "usage: unidle_timeline FILE RECORD [NAME=VALUE ...]\n";
    return 2;
  }
  try {
    write_record(read_timeline(argv[1]), values, argv[2]);
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "unidle_timeline: " << error.what() << "\n";
    return 2;
  }
}
