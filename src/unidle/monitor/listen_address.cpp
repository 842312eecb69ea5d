#include "unidle/monitor/listen_address.h"

#include <civetweb.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <string_view>

#include "unidle/base/error.h"
#include "unidle/base/numbers.h"

namespace unidle::monitor {

std::string listen_address(const std::string& option, const std::string& address) {
  const auto colon = address.rfind(':');
  const std::string host = colon == std::string::npos || colon == 0 ? "127.0.0.1" : address.substr(0, colon);
  const std::string port = colon == std::string::npos ? address : address.substr(colon + 1);
  if (!parse_number<std::uint16_t>(port)) {
    throw Error(ErrorCode::kUsage, option + " " + address, "is not an address",
                option == "--web" ? "--web=HOST:PORT or --web=PORT; a record comes before --web"
                                  : "HOST:PORT or PORT, e.g. 127.0.0.1:9400");
  }
  const bool printable = std::ranges::all_of(host, [](unsigned char byte) {
    return std::isalnum(byte) != 0 ||
           std::string_view("-._:[]").find(static_cast<char>(byte)) != std::string_view::npos;
  });
  if (!printable) {
    throw Error(ErrorCode::kUsage, option + " " + address, "has no name of a host before the port",
                "HOST:PORT, e.g. 127.0.0.1:9400");
  }
  constexpr unsigned kIpv6 = 8;  // civetweb.h, mg_check_feature
  if (host.find(':') != std::string::npos && mg_check_feature(kIpv6) == 0) {
    throw Error(ErrorCode::kUsage, option + " " + address,
                "is an IPv6 address, and the web server's library on this machine was built without IPv6",
                "give an address or a host name of IPv4, e.g. 127.0.0.1:9400");
  }
  return (host == "localhost" ? "127.0.0.1" : host) + ":" + port;
}

}  // namespace unidle::monitor
