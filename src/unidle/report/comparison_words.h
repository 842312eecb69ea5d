// A comparison as rows of words, for both the terminal and the page.
#pragma once

#include <string>
#include <vector>

#include "unidle/language/translator.h"
#include "unidle/report/comparison.h"
#include "unidle/tune/search/verifier.h"

namespace unidle::report {

struct WordRow {
  std::string label;
  std::vector<std::string> cells;  // A, B, and the difference
};

std::vector<WordRow> throughput_rows(const Comparison& comparison, const Translator& translator);
std::vector<WordRow> step_rows(const Comparison& comparison, const Translator& translator);
std::vector<WordRow> phase_rows(const Comparison& comparison, const Translator& translator);
std::vector<WordRow> learning_rows(const Comparison& comparison, const Translator& translator);
std::vector<WordRow> setting_rows(const Comparison& comparison, const Translator& translator);  // two cells per row

struct ChangeWords {
  std::string what;  // "loader.workers: 0 -> 8 (gain 1.8x)"
  std::string why;   // may be empty
};
/// What an optimising run did, as words: changes, one row a trial, and the verification as pairs of words. Recorded
/// reasons are English and translated here.
struct OptimiseWords {
  std::vector<ChangeWords> changes;
  std::vector<std::vector<std::string>> trials;
  std::vector<std::vector<std::string>> verification;
  std::string unreadable;  // how many entries could not be read; mostly empty
};
OptimiseWords optimise_words(const nlohmann::json& changes, const nlohmann::json& trials,
                             const nlohmann::json& verification, const Translator& translator);
/// The gain with its interval; from fewer than three pairs, what each gave.
std::string verified_words(const tune::Verification& found, const Translator& translator);
/// The gain, and whether the changed run learns as well, as pairs of words.
std::vector<std::vector<std::string>> verification_rows(const tune::Verification& found, const Translator& translator);
/// The columns of OptimiseWords::trials.
std::vector<std::string> trial_columns(const Translator& translator);

/// A JSON value for people: text without quotes, numbers with three digits.
std::string plain_text(const nlohmann::json& value);

/// A duration; "0 s" when it is zero.
std::string duration_words(double seconds);

/// The relative change of a duration: "-62 %"; nothing when it was zero before.
std::string change_words(double before, double after);

/// A mean step part like "120 ms"; "-" when it was not seen.
std::string step_words(const std::optional<double>& seconds);

/// The name of a step part or phase on screen.
std::string part_label(Part part, const Translator& translator);

}  // namespace unidle::report
