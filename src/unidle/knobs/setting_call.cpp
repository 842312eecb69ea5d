#include "unidle/knobs/setting_call.h"

#include "unidle/knobs/knob.h"

namespace unidle::knobs {

namespace {

constexpr std::size_t kBeforeWorkers = 5;  // arguments of DataLoader: dataset, batch_size, shuffle, two samplers

}  // namespace

std::optional<PythonSource::Call> SettingCall::find(const PythonSource& source, int line) const {
  const auto call = line > 0       ? source.call_on_line(line, functions)
                    : may_be_alone ? source.only_call(functions)
                                   : std::nullopt;
  return call && source.positional(*call) <= most_positional ? call : std::nullopt;
}

PythonSource::Given SettingCall::given(const PythonSource& source, PythonSource::Call call) const {
  return may_be_second ? source.given_second(call, argument) : source.given(call, argument);
}

std::optional<std::string> SettingCall::with(const PythonSource& source, PythonSource::Call call,
                                             std::string_view value) const {
  return may_be_second ? source.with_second_argument(call, argument, value)
                       : source.with_argument(call, argument, value);
}

std::optional<SettingCall> setting_call(std::string_view name, bool of_package) {
  const Knob* knob = find_knob(name);
  if (knob == nullptr) {
    return std::nullopt;
  }
  const Changing& change = knob->change;
  if (name == "batch.size") {
    return SettingCall{.functions = {"DataLoader", "Loader"}, .argument = "batch_size", .may_be_second = true};
  }
  if (change.code_place == "loader") {
    const std::string& argument = of_package ? change.package_argument : change.argument;
    return argument.empty() ? std::nullopt
                            : std::optional(SettingCall{.functions = {of_package ? "Loader" : "DataLoader"},
                                                        .argument = argument,
                                                        .most_positional = kBeforeWorkers});
  }
  if (change.code_place == "optimizer") {
    return SettingCall{
        .functions = {"Adam", "AdamW", "SGD", "Adagrad"}, .argument = change.argument, .may_be_alone = true};
  }
  if (change.code_place == "zero_grad") {
    return SettingCall{.functions = {"zero_grad"}, .argument = change.argument, .may_be_alone = true};
  }
  return std::nullopt;
}

std::string python_value(const Value& value) {
  return value == true ? "True" : value == false ? "False" : value.to_text();
}

}  // namespace unidle::knobs
