// Tokens and passwords, so that they are not written down.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace unidle {

/// What stands for a masked secret.
constexpr std::string_view kMasked = "****";

/// Text with its secrets masked: values of names that say so (WANDB_API_KEY=..., "hf_token": "..."), passwords in URLs,
/// and what has the shape of a token (hf_..., sk-..., ghp_..., AKIA..., xoxb-..., JSON web tokens). Linear in the
/// length.
std::string mask_secrets(std::string_view text);

/// The same for the words of a command line, where an option's value is the next word (--token X), and 40 hexadecimal
/// digits after an option or name that speaks of a key are one.
std::vector<std::string> mask_secrets(const std::vector<std::string>& words);

/// `name` is one of a secret: WANDB_API_KEY, hf_token, --password; not max_tokens, tokens_per_batch, token_dim,
/// primary_key.
bool names_secret(std::string_view name);

}  // namespace unidle
