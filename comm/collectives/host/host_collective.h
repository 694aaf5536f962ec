// Collectives between CPU workers: shared memory within a host, TCP to everyone else.
//
// A HostContext lives for the whole life of a worker process. It owns the memory that peers read
// (a control segment with flags, and the gradient buffer), the two listeners that peers connect to,
// and the run's token. Each generation gets a Collective of its own from connect().
//
//     auto context = HostContext::create({.token = token});
//     auto buffer  = context->make_buffer(layout, regions);      // once, before the first connect
//     ... tell the coordinator context->address() ...
//     auto collective = context->connect(generation, rank, member, peers, deadline_ms);
//     ... on Prepare of a newer generation, from any thread: context->close(generation);
//
// INVARIANTS
//  H1 Segments are sealed once the owner has mapped them: peers can map them for reading only, and
//     check size and seals before they do. Each flag has one writer.
//  H2 A connection counts only after both ends have proven the run's token and, on the Unix socket,
//     the same user. One of an older generation is refused; of a newer one it waits for our own
//     connect(), or for a deadline. With `tls` nothing but the handshake travels over TCP in the
//     clear.
//  H3 A wait ends: with the peer's progress, or kAborted when the peer has closed the generation,
//  or
//     is gone (its socket hung up), or when this side was closed.
//  H4 Which algorithm and which slices an operation uses is a pure function of (world size, bytes,
//     links), the same on all ranks; the bits are the same whichever it is.
//
// THREAD-SAFETY: connect() and make_buffer() from one thread at a time; address() and close() from
// any thread at any time, also while connect() blocks. Collectives and the buffer may outlive the
// context.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "comm/base/ids.h"
#include "comm/base/status.h"
#include "comm/collectives/collective.h"
#include "comm/tls/run_token.h"
#include "comm/tls/tls_identity.h"

namespace lockstep {

// Where a worker can be reached by its peers; travels as wire::DataAddress.
struct HostAddress {
  std::string host_id;    // equal on both sides: shared memory is worth a try
  std::string unix_name;  // abstract Unix socket, without the leading zero byte; empty: TCP only
  std::string tcp;        // host:port
  bool operator==(const HostAddress&) const = default;
};

struct PeerAddress {
  MemberId member = 0;
  HostAddress address;
};

struct HostOptions {
  rpc::Token token;  // secret of the run; who does not know it is refused
  // Null: TCP in the clear. Set: under TLS, with certificates of the run's authority.
  std::shared_ptr<rpc::TlsIdentity> tls = {};
  bool force_tcp = false;              // no shared memory with anyone (comm.host_transport: tcp)
  std::string tcp_host = "127.0.0.1";  // address of this machine that TCP listens on, in numbers
};

class HostContext {
 public:
  static Result<std::unique_ptr<HostContext>> create(HostOptions options);
  virtual ~HostContext() = default;

  virtual HostAddress address() const = 0;

  // The gradient buffer of the run, zeroed, in memory that peers can map. At most once. Without it
  // a Collective can do everything but begin_step() and all_reduce().
  virtual Result<std::unique_ptr<GradientBuffer>> make_buffer(const BufferLayout& layout,
                                                              uint32_t regions) = 0;

  // Connects to all peers of `generation`. peers[rank] is this worker itself (its address is not
  // used). Errors: kTimeout (says which ranks are missing), kRefused (token, or a peer is already
  // in a newer generation), kAborted (closed meanwhile), kConfig (buffers of different layout).
  // REQUIRES: every Collective of an older generation is aborted or no longer used.
  virtual Result<std::unique_ptr<Collective>> connect(Generation generation, uint32_t rank,
                                                      MemberId member,
                                                      const std::vector<PeerAddress>& peers,
                                                      int deadline_ms) = 0;

  // The rank that the last connect() which failed could not reach: nobody listens there any more,
  // or nothing came of it until the deadline (of several the first one). -1: it failed otherwise.
  // From the thread that connects.
  virtual int64_t unreachable_rank() const { return -1; }

  // Closes all generations up to and including `through`: a connect() in progress returns
  // kAborted, Collectives of them are aborted, and connections of them are refused from now on.
  virtual void close(Generation through) noexcept = 0;
};

}  // namespace lockstep
