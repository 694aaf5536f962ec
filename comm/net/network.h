// Which of this machine's addresses control and data take (comm.network): they listen there, and
// others are told it.
//
//   loopback       127.0.0.1: one machine, and nobody beyond it can connect. The default
//   10.2.0.0/16    the address that a machine has in this network; fd00:1::/64 likewise
//   eth0           the address of this interface, where every machine calls it so
//
// Invariants:
//  1. choose_address() depends on its arguments alone. Of several addresses it takes the first of
//     the first interface, IPv4 before IPv6; link-local ones of IPv6 never, since they mean
//     something on one link only.
//  2. Nothing but loopback is chosen unless it was asked for.
//
// Thread-safety: values and free functions.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "comm/base/status.h"

namespace lockstep::rpc {

// An address of this machine.
struct InterfaceAddress {
  std::string interface;  // "eth0"
  std::string address;    // in numbers, IPv4 or IPv6
};

struct Network {
  std::string interface;             // empty: any
  std::array<uint8_t, 16> prefix{};  // the first `bits` count
  uint32_t bits = 0;                 // with `interface`: 0
  uint32_t address_bytes = 0;        // 4, 16; 0: either, or loopback
  std::string text;                  // as it was asked for

  bool is_loopback() const { return interface.empty() && address_bytes == 0; }
};

// Empty text is loopback. kUsage with what can be written instead.
Result<Network> parse_network(std::string_view text);

// In numbers. kConfig, with what there is, when none of `addresses` will do.
Result<std::string> choose_address(const Network& network,
                                   const std::vector<InterfaceAddress>& addresses);

// Of the interfaces that are up, in the kernel's order.
std::vector<InterfaceAddress> own_addresses();

// All of the above.
Result<std::string> own_address_in(std::string_view network);

// The interface for data that is neither authenticated nor encrypted (NCCL's, MPI's): that of
// loopback, or where everybody in `network` is trusted the one with our address there.
std::string open_data_interface(std::string_view network, bool is_trusted);

}  // namespace lockstep::rpc
