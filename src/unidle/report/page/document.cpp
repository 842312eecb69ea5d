#include "unidle/report/page/document.h"

#include <fmt/format.h>

#include "unidle/report/page/assets.h"

namespace unidle::report {

namespace {

constexpr const char* kDocument = R"html(<!DOCTYPE html>
<html lang="{language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'nonce-page'">
<link rel="icon" href="data:,">
<title>{title} - unidle report</title>
<style>
{style}</style>
</head>
<body data-whole="{whole}">
<main>
{content}</main>
<script nonce="page">
{script}</script>
</body>
</html>
)html";

}  // namespace

std::string document(std::string_view title, const Html& content, std::string_view whole, Language language) {
  return fmt::format(fmt::runtime(kDocument), fmt::arg("language", language == Language::kChinese ? "zh-CN" : "en"),
                     fmt::arg("title", escape(title)), fmt::arg("whole", escape(whole)), fmt::arg("style", style()),
                     fmt::arg("content", content.markup), fmt::arg("script", script()));
}

}  // namespace unidle::report
