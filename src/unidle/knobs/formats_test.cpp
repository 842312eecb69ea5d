// JSON, TOML and Python: reading with positions, and edits that change nothing else.
#include <gmock/gmock.h>

#include <map>
#include <nlohmann/json.hpp>

#include "unidle/base/error.h"
#include "unidle/knobs/config_file.h"

namespace unidle::knobs {
namespace {

using ::testing::HasSubstr;

std::string edited(const std::string& name, std::string text, std::string_view path, std::string_view value) {
  ConfigFile file = ConfigFile::from_text(std::move(text), name);
  file.set(path, value);
  return file.text();
}

ErrorCode error_of(const std::string& name, const std::string& text, std::string_view path, std::string_view value) {
  try {
    edited(name, text, path, value);
  } catch (const Error& error) {
    return error.code();
  }
  return ErrorCode::kOutOfMemory;  // no error: a code that none of them has
}

std::string value_of(const ConfigFile& file, std::string_view path) {
  const Scalar* scalar = file.find(path);
  return scalar == nullptr ? "(absent)" : scalar->value;
}

constexpr const char* kJson =
    "{\n"
    "  // the loader\n"
    "  \"loader\": {\"num_workers\": 0, /* none */ \"name\": \"a\\u00e4\\\"b\"},\n"
    "  \"fp16\": {\n"
    "    \"enabled\": \"auto\",\n"
    "    \"scale\": -1.5e3,   // start\n"
    "  },\n"
    "  \"list\": [1, {\"x\": null},],\n"
    "  \"empty\": {}\n"
    "}";

TEST(Json, ReadsCommentsAndTrailingCommas) {
  const ConfigFile file = ConfigFile::from_text(kJson, "a.json");
  EXPECT_EQ(value_of(file, "loader.num_workers"), "0");
  EXPECT_EQ(value_of(file, "loader.name"), "a\xc3\xa4\"b");
  EXPECT_EQ(value_of(file, "fp16.scale"), "-1.5e3");
  EXPECT_EQ(value_of(file, "list[1].x"), "null");
  EXPECT_EQ(file.find("fp16.scale")->line, 6);
}

TEST(Json, ChangesOnlyTheValue) {
  EXPECT_THAT(edited("a.json", kJson, "loader.num_workers", "4"), HasSubstr("\"num_workers\": 4, /* none */"));
  EXPECT_THAT(edited("a.json", kJson, "loader.name", "c"), HasSubstr("\"name\": \"c\"},\n  \"fp16\""));
  EXPECT_THAT(edited("a.json", kJson, "fp16.enabled", "true"), HasSubstr("\"enabled\": true,\n"));
  EXPECT_THAT(edited("a.json", kJson, "fp16.scale", "bf16"), HasSubstr("\"scale\": \"bf16\",   // start"));
  EXPECT_EQ(edited("a.json", "{\"a\": \"16\"}", "a", "32"), "{\"a\": \"32\"}");
}

TEST(Json, InsertsInTheStyleOfTheNeighbours) {
  EXPECT_THAT(edited("a.json", kJson, "loader.pin_memory", "true"), HasSubstr("b\", \"pin_memory\": true},"));
  EXPECT_THAT(edited("a.json", kJson, "fp16.window", "7"),
              HasSubstr("\"scale\": -1.5e3,   // start\n    \"window\": 7,\n  },"));
  EXPECT_THAT(edited("a.json", kJson, "empty.x", "bf16"), HasSubstr("\"empty\": {\"x\": \"bf16\"}\n}"));
  EXPECT_THAT(edited("a.json", kJson, "g.h", "1"), HasSubstr("\"empty\": {},\n  \"g\": {\"h\": 1}\n}"));
  EXPECT_EQ(edited("a.json", "{}", "a.b", "x"), "{\"a\": {\"b\": \"x\"}}");
  EXPECT_EQ(edited("a.json", "{\r\n  \"a\": 1\r\n}\r\n", "b", "2"), "{\r\n  \"a\": 1,\r\n  \"b\": 2\r\n}\r\n");
  EXPECT_EQ(edited("a.json", "{\n\t\"a\": 1 // one\n}", "b", "2"), "{\n\t\"a\": 1, // one\n\t\"b\": 2\n}");
}

TEST(Json, RefusesWhatIsNone) {
  for (const char* text : {"", "{", "{\"a\": }", "{\"a\" 1}", "{a: 1}", "[1 2]", "{} {}", "{\"a\": \"x}", "/*", "nul",
                           "{\"a\": \"\\q\"}", "{\"a\": 01x}", "{,}"}) {
    EXPECT_THROW(ConfigFile::from_text(text, "a.json"), Error) << text;
  }
  EXPECT_THROW(ConfigFile::from_text(std::string(100'000, '['), "a.json"), Error);
  EXPECT_EQ(error_of("a.json", "[1]", "a", "1"), ErrorCode::kInput);
  EXPECT_EQ(error_of("a.json", "{\"a\": 1, \"a\": 2}", "a", "3"), ErrorCode::kInput);
}

TEST(Json, NumbersThatNoDoubleHoldsAreKeptAsTheyStand) {
  const char* const text = "{\"limit\": 1e400, \"least\": -1e-400, \"batch\": 8}";
  const ConfigFile file = ConfigFile::from_text(text, "a.json");
  EXPECT_EQ(value_of(file, "limit"), "1e400");
  EXPECT_EQ(value_of(file, "least"), "-1e-400");
  EXPECT_THAT(edited("a.json", text, "batch", "16"),
              HasSubstr("{\"limit\": 1e400, \"least\": -1e-400, \"batch\": 16}"));
  EXPECT_THROW(ConfigFile::from_text("{\"a\": inf}", "a.json"), Error);
  EXPECT_THROW(ConfigFile::from_text("{\"a\": 1e}", "a.json"), Error);
}

TEST(Json, AgreesWithTheLibrary) {
  const ConfigFile file = ConfigFile::from_text(R"({"a": ["\ud83d\ude00\t", -0.5, true], "b": {"": 1e5}})", "a.json");
  const auto reference = nlohmann::json::parse(file.text());
  EXPECT_EQ(value_of(file, "a[0]"), reference["a"][0].get<std::string>());
  EXPECT_EQ(file.scalars().size(), 4u);
}

constexpr const char* kToml =
    "# a comment\n"
    "name = 'x'  # single\n"
    "\n"
    "[training]\n"
    "local_batch_size = 1 # per device\n"
    "rate = 3e-4\n"
    "title = \"gr\xc3\xb6\xc3\x9f\"; \n";

constexpr const char* kSections =
    "name = 'x'  # single\n"
    "\n"
    "[training]\n"
    "size = 1 # per device\n"
    "\"t\xc3\xb6n\" = 'gr\xc3\xbcn'\n"
    "dtype = \"bf16\"\n"
    "at = { a = 1, b = \"two\" }\n"
    "list = [\n"
    "  \"model\", # first\n"
    "  \"loss\",\n"
    "]\n"
    "\n"
    "[compile]\n"
    "enable=false\n"
    "\n"
    "[a.b]\n"
    "[[runs]]\n"
    "x = 1\n"
    "[[runs]]\n"
    "x = 2\n"
    "long = \"\"\"one\n"
    "two\"\"\"\n"
    "when = 1979-05-27 07:32:00";

TEST(Toml, ReadsPathsValuesAndPlaces) {
  const ConfigFile file = ConfigFile::from_text(kSections, "a.toml");
  EXPECT_EQ(value_of(file, "name"), "x");
  EXPECT_EQ(value_of(file, "training.size"), "1");
  EXPECT_EQ(value_of(file, "training.t\xc3\xb6n"), "gr\xc3\xbcn");
  EXPECT_EQ(value_of(file, "training.at.b"), "two");
  EXPECT_EQ(value_of(file, "training.list[1]"), "loss");
  EXPECT_EQ(value_of(file, "runs[1].x"), "2");
  EXPECT_EQ(value_of(file, "runs[1].when"), "1979-05-27 07:32:00");
  EXPECT_FALSE(file.find("runs[1].long")->editable);
  EXPECT_EQ(file.find("training.list[1]")->line, 10);
  for (const Scalar& scalar : file.scalars()) {
    if (!scalar.quoted) {
      EXPECT_EQ(file.text().substr(scalar.begin, scalar.end - scalar.begin), scalar.value);
    }
  }
  EXPECT_THROW(ConfigFile::from_text(kToml, "a.toml"), Error) << "a semicolon is no comment";
}

TEST(Toml, NumbersHaveOneSpelling) {
  const ConfigFile file = ConfigFile::from_text(
      "a = 1_0\nb = 0x2_0\nc = 0o17\nd = 0b11\ne = +5\nf = 1_000.5\ng = +1e-3\nh = -1_0\ni = inf\nj = '1_0'\n"
      "k = 2024-01-01\n",
      "a.toml");
  const std::map<std::string, std::string> expected = {{"a", "10"},  {"b", "32"},     {"c", "15"},        {"d", "3"},
                                                       {"e", "5"},   {"f", "1000.5"}, {"g", "1e-3"},      {"h", "-10"},
                                                       {"i", "inf"}, {"j", "1_0"},    {"k", "2024-01-01"}};
  std::map<std::string, std::string> found;
  for (const Scalar& scalar : file.scalars()) {
    found[scalar.path] = scalar.value;
  }
  EXPECT_EQ(found, expected);
  EXPECT_EQ(edited("a.toml", "a = 1_0 # b\n", "a", "20"), "a = 20 # b\n");
  EXPECT_EQ(edited("a.toml", "a = 0x20\nb = 1_0\n", "a", "8"), "a = 8\nb = 1_0\n");
}

TEST(Toml, ChangesOnlyTheValue) {
  EXPECT_THAT(edited("a.toml", kSections, "training.size", "8"), HasSubstr("\nsize = 8 # per device\n"));
  EXPECT_THAT(edited("a.toml", kSections, "name", "y"), HasSubstr("name = 'y'  # single\n"));
  EXPECT_THAT(edited("a.toml", kSections, "training.t\xc3\xb6n", "rot"), HasSubstr(" = 'rot'\ndtype"));
  EXPECT_THAT(edited("a.toml", kSections, "training.at.b", "2"), HasSubstr("{ a = 1, b = \"2\" }\n"));
  EXPECT_THAT(edited("a.toml", kSections, "compile.enable", "true"), HasSubstr("\nenable=true\n"));
  EXPECT_THAT(edited("a.toml", kSections, "training.size", "auto"), HasSubstr("\nsize = \"auto\" # per"));
}

TEST(Toml, InsertsWhereAPersonWould) {
  EXPECT_THAT(edited("a.toml", kSections, "compile.mode", "default"),
              HasSubstr("enable=false\nmode=\"default\"\n\n[a.b]"));
  EXPECT_THAT(edited("a.toml", kSections, "training.seed", "1"), HasSubstr("  \"loss\",\n]\nseed = 1\n\n[compile]"));
  EXPECT_THAT(edited("a.toml", kSections, "training.at.c", "true"), HasSubstr("b = \"two\", c = true }\n"));
  EXPECT_THAT(edited("a.toml", kSections, "a.b.c", "1"), HasSubstr("[a.b]\nc = 1\n[[runs]]"));
  EXPECT_THAT(edited("a.toml", kSections, "seed", "1"), HasSubstr("# single\nseed = 1\n\n[training]"));
  EXPECT_EQ(edited("a.toml", "x = 1", "loader.workers", "4"), "x = 1\n\n[loader]\nworkers = 4\n");
  EXPECT_EQ(edited("a.toml", "", "a", "x"), "a = \"x\"\n");
  EXPECT_EQ(edited("a.toml", "[a]\r\nb = 1\r\n", "a.c", "2"), "[a]\r\nb = 1\r\nc = 2\r\n");
  EXPECT_EQ(edited("a.toml", "a = { b = \"}\" }\n", "a.c", "1"), "a = { b = \"}\", c = 1 }\n");
  EXPECT_EQ(error_of("a.toml", kSections, "training.size.x", "1"), ErrorCode::kInput);
  EXPECT_EQ(error_of("a.toml", kSections, "runs.x", "1"), ErrorCode::kInput);
}

TEST(Ini, IsNotRead) { EXPECT_EQ(error_of("a.ini", "[a]\nb = 1\n", "a.b", "2"), ErrorCode::kInput); }

TEST(Json, KeysWithBracketsAreRefused) {
  for (const char* key : {"a.b[c", "a.b]c", "a.b[].c", "a.b[1", "b[x].c"}) {
    EXPECT_EQ(error_of("a.json", "{\"a\": {}, \"b\": [{}]}", key, "2"), ErrorCode::kInput) << key;
  }
  EXPECT_EQ(edited("a.json", "{\"b\": [{\"d\": 1}]}", "b[0].c", "2"), "{\"b\": [{\"d\": 1, \"c\": 2}]}");
}

TEST(Json, KeysMayHaveControlCharacters) {
  EXPECT_EQ(edited("a.json", "{\"a\": 1}", "b\x14.c\x7f", "2"), "{\"a\": 1, \"b\\u0014\": {\"c\\u007f\": 2}}");
  EXPECT_EQ(edited("a.toml", "a = 'b'\n", "a", "x\x14"), "a = \"x\\u0014\"\n");
  EXPECT_EQ(edited("a.py", "a = 'b'\n", "a", "x\ry"), "a = \"x\\ry\"\n");
}

constexpr const char* kPython =
    "\"\"\"A module: batch_size = 3 in words.\"\"\"\n"
    "import torch  # lr = 5\n"
    "batch_size = 4  # per device\n"
    "accumulation = 5 * 8\n"
    "dtype: str = 'float16'\n"
    "flags = [True, -1.5, (\"a\", None)]\n"
    "train_dataloader = dict(\n"
    "    batch_size=2,\n"
    "    num_workers=0,  # none\n"
    "    dataset=dict(type='Coco', pipeline=[dict(type='Load'), dict(type='Flip', prob=0.5)]),\n"
    ")\n"
    "optim = {'lr': 1e-4, \"betas\": (0.9, 0.99)}\n"
    "loader = L(torch.utils.data.DataLoader)(dataset, num_workers=2)\n"
    "train.amp.enabled = True\n"
    "def f(x=1):\n"
    "    batch_size = 9\n"
    "    return f\"{x}\"\n"
    "class Config:\n"
    "    workers: int = 8\n"
    "    class Inner:\n"
    "        pin = False\n"
    "    def g(self):\n"
    "        workers = 7\n"
    "lr = 3e-4 \\\n"
    "    if torch else 0\n"
    "if True:\n"
    "    parser.add_argument('-j', '--num-workers', type=int, default=3, help=\"n\")\n";

TEST(Python, ReadsConstants) {
  const ConfigFile file = ConfigFile::from_text(kPython, "a.py");
  EXPECT_EQ(value_of(file, "batch_size"), "4");
  EXPECT_EQ(value_of(file, "dtype"), "float16");
  EXPECT_EQ(value_of(file, "flags[1]"), "-1.5");
  EXPECT_EQ(value_of(file, "flags[2][1]"), "None");
  EXPECT_EQ(value_of(file, "train_dataloader.num_workers"), "0");
  EXPECT_EQ(value_of(file, "train_dataloader.dataset.pipeline[1].prob"), "0.5");
  EXPECT_EQ(value_of(file, "optim.lr"), "1e-4");
  EXPECT_EQ(value_of(file, "loader.num_workers"), "2");
  EXPECT_EQ(value_of(file, "train.amp.enabled"), "True");
  EXPECT_EQ(value_of(file, "Config.workers"), "8");
  EXPECT_EQ(value_of(file, "Config.Inner.pin"), "False");
  EXPECT_EQ(value_of(file, "num_workers"), "3");
  EXPECT_EQ(file.find("num_workers")->line, 27);
  EXPECT_EQ(value_of(file, "accumulation"), "5 * 8");
  EXPECT_FALSE(file.find("accumulation")->editable);
  EXPECT_FALSE(file.find("lr")->editable);
  EXPECT_EQ(value_of(file, "Config.g"), "(absent)");
}

TEST(Python, ChangesOnlyTheLiteral) {
  EXPECT_THAT(edited("a.py", kPython, "batch_size", "8"), HasSubstr("\nbatch_size = 8  # per device\n"));
  EXPECT_THAT(edited("a.py", kPython, "dtype", "bfloat16"), HasSubstr("dtype: str = 'bfloat16'\n"));
  EXPECT_THAT(edited("a.py", kPython, "train_dataloader.num_workers", "4"), HasSubstr("num_workers=4,  # none"));
  EXPECT_THAT(edited("a.py", kPython, "num_workers", "6"), HasSubstr("type=int, default=6, help"));
  EXPECT_EQ(error_of("a.py", kPython, "accumulation", "1"), ErrorCode::kInput);
}

TEST(Python, InsertsIntoCallsAndDisplays) {
  EXPECT_THAT(edited("a.py", kPython, "train_dataloader.pin_memory", "True"),
              HasSubstr("'Flip', prob=0.5)]),\n    pin_memory=True,\n)\n"));
  EXPECT_THAT(edited("a.py", kPython, "optim.fused", "True"), HasSubstr("(0.9, 0.99), \"fused\": True}\n"));
  EXPECT_THAT(edited("a.py", kPython, "loader.prefetch_factor", "4"), HasSubstr("num_workers=2, prefetch_factor=4)\n"));
  EXPECT_EQ(edited("a.py", "a = 1\nprint(a)\n", "mode", "fast"), "a = 1\nmode = \"fast\"\nprint(a)\n");
  EXPECT_EQ(error_of("a.py", kPython, "nowhere.x", "1"), ErrorCode::kInput);
  EXPECT_THROW(ConfigFile::from_text("a = 'x\n", "a.py"), Error);
  EXPECT_THROW(ConfigFile::from_text("a = (1\n", "a.py"), Error);
}

}  // namespace
}  // namespace unidle::knobs
