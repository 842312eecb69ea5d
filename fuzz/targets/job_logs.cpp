// The files of a job together, whatever each of them is: a line "== " begins each but the first.
#include "fuzz.h"
#include "unidle/diagnose/diagnose.h"

namespace unidle::fuzz::targets {

namespace {

void run_job_logs(std::string_view bytes) {
  std::vector<std::filesystem::path> files;
  do {
    const auto [text, rest] = split(bytes, "\n== \n");
    files.push_back(put("logs/" + std::to_string(files.size()), text));
    bytes = rest;
  } while (!bytes.empty() && files.size() < 4);
  for (const Language language : {Language::kEnglish, Language::kChinese}) {
    may_refuse(
        [&] {
          const diagnose::Diagnosis diagnosis = diagnose::diagnose_logs(files, {}, language);
          diagnose::to_text(diagnosis, 80, false, language);
          diagnose::to_json(diagnosis);
        },
        {ErrorCode::kInput, ErrorCode::kUsage});  // a record among logs
  }
}

}  // namespace

const Target& job_logs() {
  static const Target kTarget = {"job_logs", run_job_logs};
  return kTarget;
}

}  // namespace unidle::fuzz::targets
