// Which of this machine's addresses control and data use (comm.network). They listen there, and
// others hear of that address.
//
//   loopback       127.0.0.1: one machine, and no other one can connect. The default
//   10.2.0.0/16    the machine's address in this network; also fd00:1::/64
//   eth0           the address of this interface, if every machine has one of that name
//
// Invariants:
//  1. choose_address() depends on its arguments alone. If there are several addresses, it takes the
//     first of the first interface, IPv4 before IPv6. It never takes link-local IPv6 addresses,
//     which mean something on one link only.
//  2. It chooses loopback unless the job asks for something else.
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
  std::string text;                  // as the job has it

  bool is_loopback() const { return interface.empty() && address_bytes == 0; }
};

// Empty text is loopback. kUsage with the accepted forms.
Result<Network> parse_network(std::string_view text);

// Whether only its own machine reaches a listener there, however that is said: loopback, lo,
// 127.0.0.0/8, ::1/128. False for text that is no network.
bool is_of_one_machine(std::string_view network);

// In numbers. kConfig, with the list of addresses, if none of `addresses` fits.
Result<std::string> choose_address(const Network& network,
                                   const std::vector<InterfaceAddress>& addresses);

// The addresses of the interfaces that are up, in the kernel's order.
std::vector<InterfaceAddress> own_addresses();

// Does all of the above.
Result<std::string> own_address_in(std::string_view network);

// The interface for data that is neither authenticated nor encrypted (NCCL's, MPI's): the interface
// of loopback, or, if every machine in `network` is trusted, the one of `addresses` with our
// address there. kUsage, kConfig as above: an interface that cannot be found is never replaced by
// loopback, where peers on other machines would be awaited in vain.
Result<std::string> open_data_interface(
    std::string_view network, bool is_trusted,
    const std::vector<InterfaceAddress>& addresses = own_addresses());

}  // namespace lockstep::rpc
