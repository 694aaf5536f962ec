// How OpenSSL reads and writes a socket here.
//
// Thread-safety: a free function without state.
#pragma once

struct bio_method_st;

namespace lockstep::rpc {

// For TlsContext, which owns it.
bio_method_st* make_socket_method();

}  // namespace lockstep::rpc
