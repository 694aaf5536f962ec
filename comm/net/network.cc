#include "comm/net/network.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <memory>
#include <optional>

#include "comm/base/host_name.h"
#include "comm/net/address.h"

namespace lockstep::rpc {
namespace {

struct Numbers {
  std::array<uint8_t, 16> bytes{};
  uint32_t count = 0;  // 4 or 16

  bool is_link_local() const {
    return count == 16 && bytes[0] == 0xfe && (bytes[1] & 0xc0) == 0x80;
  }
};

std::optional<Numbers> numbers_of(std::string_view text) {
  Numbers numbers;
  const std::string copy(text);
  if (::inet_pton(AF_INET, copy.c_str(), numbers.bytes.data()) == 1)
    numbers.count = 4;
  else if (::inet_pton(AF_INET6, copy.c_str(), numbers.bytes.data()) == 1)
    numbers.count = 16;
  else
    return std::nullopt;
  return numbers;
}

Status bad_network(std::string_view text, const std::string& why) {
  return Status(Code::kUsage, "\"" + std::string(text) + "\" " + why +
                                  "; write loopback, a network as in 10.2.0.0/16, or an interface "
                                  "as in eth0");
}

bool is_interface_name(std::string_view text) {
  return !text.empty() && text.size() < IFNAMSIZ &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) {
           return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.' || c == '@';
         });
}

bool has_prefix(const Numbers& numbers, const Network& network) {
  if (numbers.count != network.address_bytes) return false;
  for (uint32_t bit = 0; bit < network.bits; ++bit) {
    const uint8_t mask = static_cast<uint8_t>(0x80u >> (bit % 8));
    if (((numbers.bytes[bit / 8] ^ network.prefix[bit / 8]) & mask) != 0) return false;
  }
  return true;
}

Status no_address(const Network& network, const std::vector<InterfaceAddress>& addresses) {
  std::string there;
  for (const InterfaceAddress& a : addresses)
    there += (there.empty() ? "" : ", ") + a.interface + " " + a.address;
  return Status(Code::kConfig, "comm.network is " + network.text + ", and " + host_name() +
                                   " has no address there; it has " +
                                   (there.empty() ? "none at all" : there));
}

}  // namespace

Result<Network> parse_network(std::string_view text) {
  Network network;
  network.text = std::string(text);
  if (text.empty() || text == "loopback") return network;
  const size_t slash = text.find('/');
  if (slash == std::string_view::npos) {
    if (numbers_of(text)) return bad_network(text, "is one address, but every machine has its own");
    if (!is_interface_name(text)) return bad_network(text, "is not a network");
    network.interface = network.text;
    return network;
  }
  const auto numbers = numbers_of(text.substr(0, slash));
  const std::string_view bits = text.substr(slash + 1);
  const auto [end, error] = std::from_chars(bits.data(), bits.data() + bits.size(), network.bits);
  if (!numbers || error != std::errc() || end != bits.data() + bits.size() || network.bits == 0 ||
      network.bits > 8 * numbers->count)
    return bad_network(text, "is not a network");
  network.prefix = numbers->bytes;
  network.address_bytes = numbers->count;
  return network;
}

bool is_of_one_machine(std::string_view network) {
  const auto parsed = parse_network(network);
  if (!parsed.is_ok()) return false;
  if (parsed->is_loopback() || parsed->interface == "lo") return true;
  const bool is_whole = parsed->bits >= (parsed->address_bytes == 4 ? 8 : 128);
  return is_whole && is_loopback_host(network.substr(0, network.find('/')));
}

Result<std::string> choose_address(const Network& network,
                                   const std::vector<InterfaceAddress>& addresses) {
  if (network.is_loopback()) return std::string("127.0.0.1");
  const InterfaceAddress* found = nullptr;
  for (const InterfaceAddress& candidate : addresses) {
    const auto numbers = numbers_of(candidate.address);
    if (!numbers || numbers->is_link_local()) continue;
    const bool fits = network.interface.empty() ? has_prefix(*numbers, network)
                                                : candidate.interface == network.interface;
    if (!fits) continue;
    if (numbers->count == 4) return candidate.address;
    if (found == nullptr) found = &candidate;
  }
  return found != nullptr ? Result<std::string>(found->address) : no_address(network, addresses);
}

std::vector<InterfaceAddress> own_addresses() {
  std::vector<InterfaceAddress> addresses;
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) return addresses;
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owned(first, &::freeifaddrs);
  for (const ifaddrs* at = first; at != nullptr; at = at->ifa_next) {
    if (at->ifa_addr == nullptr || (at->ifa_flags & IFF_UP) == 0) continue;
    const int family = at->ifa_addr->sa_family;
    const void* numbers = nullptr;
    if (family == AF_INET)
      numbers = &reinterpret_cast<const sockaddr_in*>(at->ifa_addr)->sin_addr;
    else if (family == AF_INET6)
      numbers = &reinterpret_cast<const sockaddr_in6*>(at->ifa_addr)->sin6_addr;
    else
      continue;
    char text[INET6_ADDRSTRLEN] = {};
    if (::inet_ntop(family, numbers, text, sizeof text) != nullptr)
      addresses.push_back({at->ifa_name, text});
  }
  return addresses;
}

Result<std::string> own_address_in(std::string_view network) {
  LOCKSTEP_ASSIGN_OR_RETURN(const Network parsed, parse_network(network));
  return choose_address(parsed, own_addresses());
}

Result<std::string> open_data_interface(std::string_view network, bool is_trusted,
                                        const std::vector<InterfaceAddress>& addresses) {
  LOCKSTEP_ASSIGN_OR_RETURN(const Network parsed, parse_network(network));
  if (!is_trusted || parsed.is_loopback()) return std::string("lo");
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string address, choose_address(parsed, addresses));
  for (const InterfaceAddress& each : addresses)
    // A second address of eth0 may be labelled "eth0:1", which NCCL and Open MPI do not take.
    if (each.address == address) return each.interface.substr(0, each.interface.find(':'));
  return no_address(parsed, addresses);
}

}  // namespace lockstep::rpc
