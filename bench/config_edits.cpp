// The cost per setting in large configurations: reading, recognising knobs, and changing one knob wherever it is set.
// Processor time for files of 1,000, 4,000 and 16,000 settings in each format; the ratio of the last two is 4 when the
// cost per setting is constant. With --json prints one object per line.
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "unidle/base/json.h"
#include "unidle/knobs/apply.h"
#include "unidle/knobs/config_file.h"
#include "unidle/knobs/recognize.h"

namespace {

using unidle::knobs::ConfigFile;

struct Form {
  const char* name;  // of the file
  std::string (*setting)(int);
  const char* begin = "";
  const char* end = "";
};

const std::vector<Form> kForms = {
    {"x.yaml", [](int i) { return fmt::format("stage{}:\n  num_workers: 0\n", i); }},
    {"x.toml", [](int i) { return fmt::format("[stage{}]\nnum_workers = 0\n", i); }},
    {"x.json", [](int i) { return fmt::format("  \"stage{}\": {{\"num_workers\": 0}},\n", i); }, "{\n",
     "  \"end\": 0\n}\n"},
    {"x.py", [](int i) { return fmt::format("stage{} = dict(num_workers=0)\n", i); }},
};

double cpu_s() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double cost_s(const Form& form, int settings) {
  std::string text = form.begin;
  for (int i = 0; i < settings; ++i) {
    text += form.setting(i);
  }
  text += form.end;
  double least = 1e9;
  for (int run = 0; run < 3; ++run) {
    const double begin = cpu_s();
    ConfigFile file = ConfigFile::from_text(text, form.name);
    const std::size_t changed = unidle::knobs::set_knob(file, "loader.workers", 4).size();
    least = std::min(least, changed == static_cast<std::size_t>(settings) ? cpu_s() - begin : 1e9);
  }
  return least;
}

}  // namespace

int main(int argc, char** argv) {
  const bool json = argc > 1 && std::string_view(argv[1]) == "--json";
  for (const Form& form : kForms) {
    const double few = cost_s(form, 1000);
    const double many = cost_s(form, 4000);
    const double most = cost_s(form, 16000);
    if (json) {
      fmt::print("{}\n", unidle::json_text(nlohmann::json{{"name", std::string("config_edits ") + form.name},
                                                          {"unit", "s of 4,000 settings"},
                                                          {"ours", many},
                                                          {"peers", nlohmann::json::object()},
                                                          {"ratio", most / many}},
                                           -1));
    } else {
      fmt::print("{:<8} 1,000 in {:.3f} s, 4,000 in {:.3f} s ({:.1f}x), 16,000 in {:.3f} s ({:.1f}x)\n", form.name, few,
                 many, many / few, most, most / many);
    }
  }
  return 0;
}
