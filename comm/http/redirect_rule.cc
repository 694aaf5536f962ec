#include "comm/http/redirect_rule.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cstdint>

namespace lockstep::http {
namespace {

struct Block {
  uint32_t first;
  int bits;
  AddressKind kind;
};

// RFC 6890 and 6598.
constexpr std::array kBlocks = {Block{0x7f000000, 8, AddressKind::kLoopback},
                                Block{0x00000000, 8, AddressKind::kLoopback},  // "this host"
                                Block{0xa9fe0000, 16, AddressKind::kLinkLocal},
                                Block{0x0a000000, 8, AddressKind::kPrivate},
                                Block{0xac100000, 12, AddressKind::kPrivate},
                                Block{0xc0a80000, 16, AddressKind::kPrivate},
                                Block{0x64400000, 10, AddressKind::kPrivate},  // of carriers
                                Block{0xc0000000, 24, AddressKind::kPrivate},
                                Block{0xc6120000, 15, AddressKind::kPrivate}};  // for benchmarks

AddressKind kind_of_v4(uint32_t address) {
  for (const Block& block : kBlocks)
    if ((address ^ block.first) >> (32 - block.bits) == 0) return block.kind;
  return AddressKind::kPublic;
}

AddressKind kind_of_v6(const in6_addr& address) {
  const uint8_t* bytes = address.s6_addr;
  const uint32_t last = uint32_t{bytes[12]} << 24 | uint32_t{bytes[13]} << 16 |
                        uint32_t{bytes[14]} << 8 | uint32_t{bytes[15]};
  constexpr std::array<uint8_t, 4> kNat64 = {0x00, 0x64, 0xff, 0x9b};  // 64:ff9b::/96, RFC 6052
  const bool is_nat64 = std::equal(kNat64.begin(), kNat64.end(), bytes);
  if (IN6_IS_ADDR_LOOPBACK(&address) || IN6_IS_ADDR_UNSPECIFIED(&address))
    return AddressKind::kLoopback;
  if (IN6_IS_ADDR_V4MAPPED(&address) || IN6_IS_ADDR_V4COMPAT(&address) || is_nat64)
    return kind_of_v4(last);
  if (IN6_IS_ADDR_LINKLOCAL(&address)) return AddressKind::kLinkLocal;
  const bool is_unique_local = (bytes[0] & 0xfe) == 0xfc;
  return is_unique_local || IN6_IS_ADDR_SITELOCAL(&address) ? AddressKind::kPrivate
                                                            : AddressKind::kPublic;
}

}  // namespace

AddressKind kind_of(const std::string& address) {
  in_addr v4{};
  in6_addr v6{};
  const std::string without_zone = address.substr(0, address.find('%'));
  if (::inet_pton(AF_INET, without_zone.c_str(), &v4) == 1) return kind_of_v4(ntohl(v4.s_addr));
  if (::inet_pton(AF_INET6, without_zone.c_str(), &v6) == 1) return kind_of_v6(v6);
  return AddressKind::kLoopback;
}

bool may_redirect(AddressKind from, AddressKind to) {
  switch (to) {
    case AddressKind::kPublic:
      return true;
    case AddressKind::kPrivate:
      return from != AddressKind::kPublic;
    case AddressKind::kLinkLocal:
    case AddressKind::kLoopback:
      return from == to;
  }
  return false;
}

const char* text_of(AddressKind kind) {
  switch (kind) {
    case AddressKind::kPublic:
      return "a public address";
    case AddressKind::kPrivate:
      return "a private address";
    case AddressKind::kLinkLocal:
      return "a link-local address";
    case AddressKind::kLoopback:
      return "this machine";
  }
  return "";
}

}  // namespace lockstep::http
