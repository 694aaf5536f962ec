#include "comm/net/address.h"

#include <arpa/inet.h>

#include <charconv>

namespace lockstep::rpc {
namespace {

Status bad_address(std::string_view text) {
  return Status(Code::kUsage, "\"" + std::string(text) +
                                  "\" is not an address: write host:port, for IPv6 [host]:port");
}

bool parse_port(std::string_view text, uint16_t* port) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *port);
  return error == std::errc() && end == text.data() + text.size();
}

bool is_host_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '-' || c == '_';
}

}  // namespace

Result<Address> parse_address(std::string_view text) {
  Address address;
  std::string_view host;
  size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return bad_address(text);
  if (text.front() == '[') {
    if (colon < 2 || text[colon - 1] != ']') return bad_address(text);
    host = text.substr(1, colon - 2);
    in6_addr ignored;
    if (::inet_pton(AF_INET6, std::string(host).c_str(), &ignored) != 1) return bad_address(text);
  } else {
    host = text.substr(0, colon);
    if (host.empty()) return bad_address(text);
    for (const char c : host)
      if (!is_host_char(c)) return bad_address(text);
  }
  if (!parse_port(text.substr(colon + 1), &address.port)) return bad_address(text);
  address.host = std::string(host);
  return address;
}

std::string to_string(const Address& address) {
  const bool is_ipv6 = address.host.find(':') != std::string::npos;
  const std::string host = is_ipv6 ? "[" + address.host + "]" : address.host;
  return host + ":" + std::to_string(address.port);
}

bool is_loopback_host(std::string_view host) {
  if (host == "localhost") return true;
  const std::string text(host);
  in_addr v4;
  if (::inet_pton(AF_INET, text.c_str(), &v4) == 1) return (ntohl(v4.s_addr) >> 24) == 127;
  in6_addr v6;
  return ::inet_pton(AF_INET6, text.c_str(), &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

Result<Address> numeric_address(const Address& address) {
  if (address.host == "localhost") return Address{"127.0.0.1", address.port};
  in6_addr ignored;  // has room for either kind
  for (const int family : {AF_INET, AF_INET6})
    if (::inet_pton(family, address.host.c_str(), &ignored) == 1) return address;
  return Status(Code::kConfig, to_string(address) + " is a name; write a numeric address");
}

Status check_loopback(const Address& address) {
  if (is_loopback_host(address.host)) return Status::ok();
  return Status(Code::kConfig, to_string(address) +
                                   " can be reached from other machines: HTTP there needs "
                                   "certificates (comm.tls) and a token, or use 127.0.0.1");
}

}  // namespace lockstep::rpc
