#include "comm/http/http_get.h"

#include "comm/http/http_call.h"

namespace lockstep::http {

Result<GetResult> http_get(const rpc::Address& address, const std::string& path, int64_t timeout_ms,
                           const Access& access, size_t limit_bytes) {
  const std::string request = "GET " + path + " HTTP/1.0\r\nHost: " + rpc::to_string(address) +
                              "\r\n" + authorization_line(access.token) + "\r\n";
  return http_call({address, address.host, request, access.tls}, timeout_ms, limit_bytes);
}

}  // namespace lockstep::http
