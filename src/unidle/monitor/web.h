// Serves the live page to browsers.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "unidle/language/language.h"
#include "unidle/monitor/snapshot.h"

namespace unidle::monitor {

/// Serves the page on its own threads until destroyed. A request without the token, which is drawn anew for each
/// server, gets 403: other users of the machine reach the port as well. The connection is not encrypted.
class WebView {
 public:
  /// `address`: see listen_address(). Throws kIo when it cannot listen there.
  WebView(const std::string& address, Language language);
  ~WebView();
  WebView(const WebView&) = delete;
  WebView& operator=(const WebView&) = delete;

  /// Replaces what is shown and adds to the curves. `verdict`: of the session so far, in the page's language.
  /// Thread-safe.
  void publish(const Snapshot& snapshot, std::string verdict);
  /// The page's address with the token, and with the actual port when port 0 was requested.
  std::string url() const;
  int port() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace unidle::monitor
