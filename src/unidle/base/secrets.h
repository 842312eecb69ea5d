// Masks tokens and passwords, so that they are never stored.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace unidle {

/// Replaces a masked secret.
constexpr std::string_view kMasked = "****";

/// Masks the secrets in a text: values of names like WANDB_API_KEY=... and "hf_token": "...", passwords in URLs, and
/// strings in a token's format (hf_..., sk-..., ghp_..., AKIA..., xoxb-..., JSON web tokens). Linear time.
std::string mask_secrets(std::string_view text);

/// The same for the words of a command line, where an option's value is the next word (--token X). 40 hexadecimal
/// digits after an option or name that mentions a key are a secret too.
std::vector<std::string> mask_secrets(const std::vector<std::string>& words);

/// Whether `name` names a secret: WANDB_API_KEY, hf_token, --password; not max_tokens, tokens_per_batch, token_dim,
/// primary_key.
bool names_secret(std::string_view name);

}  // namespace unidle
