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
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'nonce-page'{connect}">
<link rel="icon" href="data:,">
<title>{title}</title>
<style>
{style}</style>
</head>
<body data-whole="{whole}" data-lost="{lost}">
<main>
{content}</main>
<script nonce="page">
{script}{more}</script>
</body>
</html>
)html";

}  // namespace

std::string document(const Document& document, Language language) {
  return fmt::format(fmt::runtime(kDocument), fmt::arg("language", language == Language::kChinese ? "zh-CN" : "en"),
                     fmt::arg("title", escape(document.title)), fmt::arg("whole", escape(document.whole)),
                     fmt::arg("lost", escape(document.lost)), fmt::arg("style", style()),
                     fmt::arg("connect", document.script.empty() ? "" : "; connect-src 'self'"),
                     fmt::arg("content", document.content.markup), fmt::arg("script", script()),
                     fmt::arg("more", document.script));
}

}  // namespace unidle::report
