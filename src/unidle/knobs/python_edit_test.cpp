#include "unidle/knobs/python_edit.h"

#include <gtest/gtest.h>

namespace unidle::knobs {
namespace {

std::string with_workers(const std::string& call) {
  const auto source = PythonSource::read(call);
  const auto loader = source ? source->only_call({"DataLoader"}) : std::nullopt;
  return loader ? source->with_argument(*loader, "num_workers", "2").value_or("left alone") : "left alone";
}

TEST(WithArgument, AddsBehindTheLastOne) {
  EXPECT_EQ(with_workers("DataLoader(data, batch_size=4)"), "DataLoader(data, batch_size=4, num_workers=2)");
  EXPECT_EQ(with_workers("DataLoader()"), "DataLoader(num_workers=2)");
  EXPECT_EQ(with_workers("DataLoader(data[f(1, 2)],  # ) not, this\n           shuffle=True,\n)"),
            "DataLoader(data[f(1, 2)],  # ) not, this\n           shuffle=True, num_workers=2,\n)");
  EXPECT_EQ(with_workers("DataLoader(Pairs(\"a)b\", 'c(', \"\"\"d\n)\"\"\"))"),
            "DataLoader(Pairs(\"a)b\", 'c(', \"\"\"d\n)\"\"\"), num_workers=2)");
}

TEST(WithArgument, ReplacesTheValue) {
  EXPECT_EQ(with_workers("DataLoader(data, num_workers=0, shuffle=True)"),
            "DataLoader(data, num_workers=2, shuffle=True)");
  EXPECT_EQ(with_workers("DataLoader(data, num_workers = cfg.get(\"workers\", 0)  # why\n)"),
            "DataLoader(data, num_workers = 2  # why\n)");
}

TEST(WithArgument, LeavesAloneWhatIsNotCertain) {
  EXPECT_EQ(with_workers("DataLoader(data, **options)"), "left alone");
  EXPECT_EQ(with_workers("DataLoader(data"), "left alone");
}

std::string with_batch(const std::string& call) {
  const auto source = PythonSource::read(call);
  return source->with_second_argument(*source->only_call({"DataLoader"}), "batch_size", "64").value_or("left alone");
}

TEST(WithSecondArgument, ItMayHaveNoName) {
  EXPECT_EQ(with_batch("DataLoader(data, 16, True)"), "DataLoader(data, 64, True)");
  EXPECT_EQ(with_batch("DataLoader(data, size_of(name='a'))"), "DataLoader(data, 64)") << "the = is not its own";
  EXPECT_EQ(with_batch("DataLoader(data, a == b)"), "DataLoader(data, 64)");
  EXPECT_EQ(with_batch("DataLoader(data, shuffle=True)"), "DataLoader(data, shuffle=True, batch_size=64)");
  EXPECT_EQ(with_batch("DataLoader(data)"), "DataLoader(data, batch_size=64)");
  EXPECT_EQ(with_batch("DataLoader(data, *more)"), "left alone");
  EXPECT_EQ(with_batch("DataLoader(*all, batch_size=4)"), "left alone");
}

using Given = PythonSource::Given;

Given workers_given(const std::string& call) {
  const auto source = PythonSource::read(call);
  return source->given(*source->only_call({"DataLoader"}), "num_workers");
}

TEST(Given, TellsAValueFromAnExpression) {
  EXPECT_EQ(workers_given("DataLoader(data, 4)"), Given::kNot);
  EXPECT_EQ(workers_given("DataLoader(data, num_workers=0)"), Given::kLiteral);
  EXPECT_EQ(workers_given("DataLoader(data, num_workers=args.workers)"), Given::kExpression);
  EXPECT_EQ(workers_given("DataLoader(data, num_workers=2 * n)"), Given::kExpression);
  EXPECT_EQ(workers_given("DataLoader(data, **options)"), Given::kUnknown);
}

TEST(Given, BySecondPlaceToo) {
  const auto given = [](const std::string& call) {
    const auto source = PythonSource::read(call);
    return source->given_second(*source->only_call({"DataLoader"}), "batch_size");
  };
  EXPECT_EQ(given("DataLoader(data, 16)"), Given::kLiteral);
  EXPECT_EQ(given("DataLoader(data, args.batch)"), Given::kExpression);
  EXPECT_EQ(given("DataLoader(data, batch_size=16)"), Given::kLiteral);
  EXPECT_EQ(given("DataLoader(data, shuffle=True)"), Given::kNot);
  EXPECT_EQ(given("DataLoader(data, *more)"), Given::kUnknown);
}

TEST(PythonSource, FindsTheOnlyCall) {
  const auto calls = [](const std::string& text) { return PythonSource::read(text)->only_call({"Adam"}).has_value(); };
  EXPECT_TRUE(calls("opt = torch.optim.Adam(x)\n"));
  EXPECT_TRUE(calls("class Adam(Base):\n  pass\nopt = Adam(x)  # Adam(y)\ntext = 'Adam(z)'\n"));
  EXPECT_FALSE(calls("a = Adam(x)\nb = Adam(y)\n"));
  EXPECT_FALSE(calls("a = MyAdam(x)\nb = Adam\n"));
}

TEST(PythonSource, IsNotReadWhereItIsNoPython) {
  EXPECT_FALSE(PythonSource::read("f(\n"));
  EXPECT_FALSE(PythonSource::read("x = 'open\n"));
  EXPECT_TRUE(PythonSource::read(""));
}

}  // namespace
}  // namespace unidle::knobs
