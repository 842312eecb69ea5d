#include "unidle/monitor/web.h"

#include <civetweb.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <mutex>
#include <string_view>
#include <utility>

#include "unidle/base/environment.h"
#include "unidle/base/error.h"
#include "unidle/monitor/listen_address.h"
#include "unidle/monitor/live_page.h"

namespace unidle::monitor {

namespace {

/// The server's library is to be started and ended by each of its users.
struct Library {
  Library() { mg_init_library(0); }
  ~Library() { mg_exit_library(); }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
};

struct StopServer {
  void operator()(mg_context* server) const { mg_stop(server); }
};

/// 128 random bits in hexadecimal digits.
std::string new_token() {
  std::array<unsigned char, 16> bytes{};
  if (::getentropy(bytes.data(), bytes.size()) != 0) {
    throw system_error(ErrorCode::kIo, "--web", "no random numbers for the address", errno);
  }
  std::string token;
  for (const unsigned char byte : bytes) {
    token += fmt::format("{:02x}", byte);
  }
  return token;
}

/// Takes the same time for every wrong token of this length.
bool is_same(std::string_view a, std::string_view b) {
  unsigned difference = a.size() == b.size() ? 0 : 1;
  for (std::size_t i = 0; i < a.size() && i < b.size(); ++i) {
    difference |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]);
  }
  return difference == 0;
}

bool has_token(const mg_request_info& request, const std::string& token) {
  const std::string_view query = request.query_string == nullptr ? "" : request.query_string;
  std::array<char, 64> given{};
  const int length = mg_get_var(query.data(), query.size(), "token", given.data(), given.size());
  return length > 0 && is_same({given.data(), static_cast<std::size_t>(length)}, token);
}

/// Beside that in the document, which cannot say who may frame it.
constexpr const char* kPolicy = "frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

void answer(mg_connection* connection, int status, const char* type, std::string_view body, bool with_body) {
  mg_response_header_start(connection, status);
  for (const auto& [name, value] : {std::pair("Content-Type", type),
                                    {"Cache-Control", "no-store"},
                                    {"X-Content-Type-Options", "nosniff"},
                                    {"X-Frame-Options", "DENY"},
                                    {"Content-Security-Policy", kPolicy},
                                    {"Referrer-Policy", "no-referrer"}}) {
    mg_response_header_add(connection, name, value, -1);
  }
  mg_response_header_add(connection, "Content-Length", std::to_string(body.size()).c_str(), -1);
  mg_response_header_send(connection);
  if (with_body) {
    mg_write(connection, body.data(), body.size());
  }
}

constexpr const char* kText = "text/plain; charset=utf-8";
constexpr const char* kMarkup = "text/html; charset=utf-8";

}  // namespace

struct WebView::Impl {
  Library library;
  std::string host;
  std::string token = new_token();
  Language language = Language::kEnglish;
  std::mutex mutex;  // of the state
  LiveState state;
  std::unique_ptr<mg_context, StopServer> server;  // stops first: its threads use the rest

  std::string drawn(bool document) {
    LiveState now;
    {
      const std::lock_guard lock(mutex);  // not held while drawing: the monitor would wait
      now = state;
    }
    return document ? live_document(now, language) : live_content(now, language);
  }

  /// Called by a thread of the server; nothing may be thrown into it. Returns the status.
  static int handle(mg_connection* connection, void* self) noexcept {
    constexpr int kOk = 200;
    constexpr int kForbidden = 403;
    constexpr int kNotFound = 404;
    constexpr int kNotAllowed = 405;
    constexpr int kFailed = 500;
    auto& view = *static_cast<Impl*>(self);
    const mg_request_info& request = *mg_get_request_info(connection);
    const std::string_view method = request.request_method;
    const std::string_view path = request.local_uri;
    const bool with_body = method != "HEAD";
    try {
      if (method != "GET" && method != "HEAD") {
        answer(connection, kNotAllowed, kText, "GET is expected\n", with_body);
        return kNotAllowed;
      }
      if (!has_token(request, view.token)) {
        answer(connection, kForbidden, kText, "The address that unidle monitor printed ends in a token.\n", with_body);
        return kForbidden;
      }
      if (path != "/" && path != "/content") {
        answer(connection, kNotFound, kText, "There is only one page here.\n", with_body);
        return kNotFound;
      }
      answer(connection, kOk, kMarkup, view.drawn(path == "/"), with_body);
      return kOk;
    } catch (const std::exception&) {
      return kFailed;  // out of memory, say; the connection ends
    }
  }
};

WebView::WebView(const std::string& address, Language language) : impl_(std::make_unique<Impl>()) {
  const std::string whole = listen_address("--web", address);
  impl_->host = whole.substr(0, whole.rfind(':'));
  impl_->language = language;
  std::array<const char*, 7> options = {"listening_ports",    whole.c_str(), "num_threads", "32",
                                        "request_timeout_ms", "2000",        nullptr};
  const mg_callbacks none{};
  impl_->server.reset(mg_start(&none, nullptr, options.data()));
  if (!impl_->server) {
    throw Error(ErrorCode::kIo, "--web " + address, "cannot be listened on",
                "another program may use the port, or the host is not of this machine");
  }
  mg_set_request_handler(impl_->server.get(), "/", Impl::handle, impl_.get());
}

WebView::~WebView() = default;

void WebView::publish(const Snapshot& snapshot, std::string verdict) {
  const std::lock_guard lock(impl_->mutex);
  impl_->state.now = snapshot;
  impl_->state.course.add(snapshot);
  impl_->state.verdict = std::move(verdict);
}

int WebView::port() const {
  mg_server_port found{};
  return mg_get_server_ports(impl_->server.get(), 1, &found) > 0 ? found.port : 0;
}

std::string WebView::url() const {
  const std::string host = impl_->host == "0.0.0.0" ? host_name() : impl_->host;
  return fmt::format("http://{}:{}/?token={}", host, port(), impl_->token);
}

}  // namespace unidle::monitor
