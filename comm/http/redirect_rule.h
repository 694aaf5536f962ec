// Says where a server of data may redirect to. A public server must not make a run ask services
// inside of the run's own network, such as a cloud's metadata at 169.254.169.254.
//
// Thread-safety: pure functions.
#pragma once

#include <string>

namespace lockstep::http {

enum class AddressKind { kPublic, kPrivate, kLinkLocal, kLoopback };

// `address`: digits of IPv4 or IPv6, also an IPv4 address inside of an IPv6 one. Text that is no
// address counts as loopback, to which no server elsewhere may redirect.
AddressKind kind_of(const std::string& address);

// True to a public address; to a private one from any but a public one; to link-local and loopback
// addresses only from the same kind.
bool may_redirect(AddressKind from, AddressKind to);

const char* text_of(AddressKind kind);  // "a link-local address"

}  // namespace lockstep::http
