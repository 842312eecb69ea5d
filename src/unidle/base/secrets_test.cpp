#include "unidle/base/secrets.h"

#include <gmock/gmock.h>

#include <chrono>
#include <map>

namespace unidle {
namespace {

using ::testing::ElementsAre;

const std::string kHex = "0123456789abcdef0123456789abcdef01234567";
const std::string kLetters = "abcDEF0123456789ghiJKL0123456789";

TEST(Secrets, AreMaskedByNameAndByShape) {
  const std::map<std::string, std::string> kTexts = {
      {"WANDB_API_KEY=" + kHex, "WANDB_API_KEY=****"},
      {"env HF_TOKEN=abc python train.py", "env HF_TOKEN=**** python train.py"},
      {"--token=s3cret --lr 1", "--token=**** --lr 1"},
      {"--wandb-key=" + kHex, "--wandb-key=****"},
      {"DB_PASSWORD='a b c' x", "DB_PASSWORD='****' x"},
      {R"({"hf_token": "abc", "lr": 1})", R"({"hf_token": "****", "lr": 1})"},
      {"api_key: abc\nlr: 1", "api_key: ****\nlr: 1"},
      {"AWS_SECRET_ACCESS_KEY=x/y+z", "AWS_SECRET_ACCESS_KEY=****"},
      {"AWS_ACCESS_KEY_ID=AKIAIOSFODNN7EXAMPLE", "AWS_ACCESS_KEY_ID=****"},
      {"https://me:secret@host/x?y", "https://me:****@host/x?y"},
      {"postgres://u:p@db:5432/study", "postgres://u:****@db:5432/study"},
      {"Invalid token hf_" + kLetters + ".", "Invalid token ****."},
      {"sk-proj-" + kLetters, "****"},
      {"ghp_" + kLetters + " and xoxb-12345678901-ab", "**** and ****"},
      {"key AKIAIOSFODNN7EXAMPLE!", "key ****!"},
      {"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc-def_1", "****"},
      {"https://host/x?access_token=abc&y=1", "https://host/x?access_token=****&y=1"},
      {"credentials=abc", "credentials=****"},
      {"clientSecret=abc", "clientSecret=****"}};
  for (const auto& [text, masked] : kTexts) {
    EXPECT_EQ(mask_secrets(text), masked);
    EXPECT_EQ(mask_secrets(masked), masked) << "twice is once";
  }
}

TEST(Secrets, LookAlikesStay) {
  for (const std::string& text : {std::string("--tokens-per-batch 4096"),
                                  std::string("--max_token 5"),
                                  std::string("--max_token=5"),
                                  std::string("pad_token=<pad>"),
                                  std::string("eos_token: </s>"),
                                  std::string("num_tokens=1000 token_dim=64 tokenizer=gpt2"),
                                  "checkpoints/" + kHex + "/model.pt",
                                  kHex,
                                  "commit=" + kHex,
                                  "--revision=" + kHex,
                                  std::string("primary_key=id sort-key=name monkey=banana"),
                                  std::string("sk-learn-contrib-estimators-for-all"),
                                  std::string("hf_hub_download_with_retries_and_more"),
                                  std::string("HF_TOKEN_PATH=/home/me/token"),
                                  std::string("PWD=/home/me"),
                                  std::string("token=$HF_TOKEN use_auth_token=True token=/run/secret"),
                                  std::string("https://host:8080/a@b"),
                                  std::string("meta-llama/Llama-2-7b-hf"),
                                  std::string("lr=1e-3 batch:8 a==b"),
                                  std::string("s3://bucket/data-2024-01-01T00:00:00.tar")}) {
    EXPECT_EQ(mask_secrets(text), text);
  }
}

TEST(Secrets, OfACommandFollowTheirOptions) {
  const auto masked = [](const std::vector<std::string>& words) { return mask_secrets(words); };
  EXPECT_THAT(masked({"python", "train.py", "--token", "abc", "--lr", "1"}),
              ElementsAre("python", "train.py", "--token", "****", "--lr", "1"));
  EXPECT_THAT(masked({"wandb", "login", kHex}), ElementsAre("wandb", "login", "****"));
  EXPECT_THAT(masked({"x", "--wandb-key", kHex, "--revision", kHex}),
              ElementsAre("x", "--wandb-key", "****", "--revision", kHex));
  EXPECT_THAT(masked({"env", "WANDB_API_KEY=abc", "bash", "-c", "HF_TOKEN=abc python x.py"}),
              ElementsAre("env", "WANDB_API_KEY=****", "bash", "-c", "HF_TOKEN=**** python x.py"));
  EXPECT_THAT(masked({"x", "--max_token", "5", "--pad-token", "<pad>", "--password", "--verbose"}),
              ElementsAre("x", "--max_token", "5", "--pad-token", "<pad>", "--password", "--verbose"));
}

TEST(Secrets, AreLookedForInLinearTime) {
  const auto time_of = [](const std::string& text) {
    const auto begin = std::chrono::steady_clock::now();
    mask_secrets(text);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  for (const char* unit : {"://", "a:", "token", "eyJ.", "token=\"", "   ", "://a:"}) {
    std::string text;
    while (text.size() < 200'000) {
      text += unit;
    }
    time_of(text);
    EXPECT_LT(time_of(text + text + text + text), 12 * time_of(text) + 0.05) << unit;
  }
}

}  // namespace
}  // namespace unidle
