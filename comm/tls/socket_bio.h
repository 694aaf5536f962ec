// OpenSSL's way to read and write a socket here.
//
// Thread-safety: a free function without state.
#pragma once

struct bio_method_st;

namespace lockstep::rpc {

// TlsContext owns the result.
bio_method_st* make_socket_method();

}  // namespace lockstep::rpc
