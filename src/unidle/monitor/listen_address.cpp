#include "unidle/monitor/listen_address.h"

#include <cstdint>

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
  return (host == "localhost" ? "127.0.0.1" : host) + ":" + port;
}

}  // namespace unidle::monitor
