// An address to listen on or to connect to: "127.0.0.1:4100", "localhost:0", "[::1]:4100".
//
// Thread-safety: values and free functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "comm/base/status.h"

namespace lockstep::rpc {

struct Address {
  std::string host;   // a name, an IPv4 address, or an IPv6 address without brackets
  uint16_t port = 0;  // 0: any free port, for listening only
  bool operator==(const Address&) const = default;
};

// kUsage with the offending text if it is not host:port. IPv6 needs brackets.
Result<Address> parse_address(std::string_view text);

// The inverse: brackets around IPv6.
std::string to_string(const Address& address);

// The address in numbers. "localhost" is 127.0.0.1; other names are kConfig.
Result<Address> numeric_address(const Address& address);

// kConfig, with what to write instead, unless only this machine can reach the address.
Status check_loopback(const Address& address);

// True for localhost, 127.0.0.0/8 and ::1.
bool is_loopback_host(std::string_view host);

}  // namespace lockstep::rpc
