// Collectives between CPU workers: shared memory within a host, TCP to all other ranks.
//
// A HostContext lives as long as its worker process. It owns the memory that peers read (a control
// segment with flags, and the gradient buffer), the two listeners that peers connect to, and the
// run's token. Each generation gets a Collective of its own from connect().
//
//     auto context = HostContext::create({.token = token});
//     auto buffer  = context->make_buffer(layout, regions);      // once, before the first connect
//     ... tell the coordinator context->address() ...
//     auto collective = context->connect(generation, rank, member, peers, deadline_ms);
//     ... on Prepare of a newer generation, from any thread: context->close(generation);
//
// INVARIANTS
//  H1 The owner seals its segments after it has mapped them. Peers can map them for reading only,
//     and check size and seals before. Each flag has one writer.
//
//  H2 A connection counts only after both ends have proven the run's token and, on the Unix socket,
//     the same user. The acceptor refuses one of an older generation. One of a newer generation
//     waits for our own connect(), or for a deadline. With `tls`, only the handshake travels over
//     TCP in the clear.
//
//  H3 A wait ends with the peer's progress. It ends with kAborted if the peer has closed the
//     generation or is gone (its socket hung up), or if this side was closed.
//
//  H4 Algorithm and slices of an operation are a pure function of (world size, bytes, links), the
//     same on all ranks. The bits are the same for every choice.
//
// THREAD-SAFETY: connect() and make_buffer() from one thread at a time. address() and close() from
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

// A worker's address for its peers. It travels as wire::DataAddress.
struct HostAddress {
  std::string host_id;    // if equal on both sides, shared memory may work
  std::string unix_name;  // abstract Unix socket, without the leading zero byte; empty: TCP only
  std::string tcp;        // host:port
  bool operator==(const HostAddress&) const = default;
};

struct PeerAddress {
  MemberId member = 0;
  HostAddress address;
};

struct HostOptions {
  rpc::Token token;  // the run's secret; a peer that does not know it is refused
  // Null: TCP in the clear. Set: TCP under TLS, with certificates of the run's authority.
  std::shared_ptr<rpc::TlsIdentity> tls = {};
  bool force_tcp = false;              // no shared memory with anyone (comm.host_transport: tcp)
  std::string tcp_host = "127.0.0.1";  // the numeric address of this machine that TCP listens on
};

class HostContext {
 public:
  static Result<std::unique_ptr<HostContext>> create(HostOptions options);
  virtual ~HostContext() = default;

  virtual HostAddress address() const = 0;

  // The gradient buffer of the run, zeroed, in memory that peers can map. Call it at most once.
  // Without the buffer a Collective can do everything except begin_step() and all_reduce().
  virtual Result<std::unique_ptr<GradientBuffer>> make_buffer(const BufferLayout& layout,
                                                              uint32_t regions) = 0;

  // Connects to all peers of `generation`. peers[rank] is this worker itself; its address is not
  // used. Errors: kTimeout (names the missing ranks), kRefused (token, or a peer is already in a
  // newer generation), kAborted (closed meanwhile), kConfig (buffers of different layout).
  // REQUIRES: every Collective of an older generation is aborted or no longer used.
  virtual Result<std::unique_ptr<Collective>> connect(Generation generation, uint32_t rank,
                                                      MemberId member,
                                                      const std::vector<PeerAddress>& peers,
                                                      int deadline_ms) = 0;

  // The rank that the last failed connect() could not reach: it no longer listens, or it did not
  // answer until the deadline. If there are several, the first one. -1: connect() failed otherwise.
  // Call it on the connecting thread.
  virtual int64_t unreachable_rank() const { return -1; }

  // Closes all generations up to and including `through`. A connect() in progress returns kAborted.
  // Their Collectives are aborted, and from now on their connections are refused.
  virtual void close(Generation through) noexcept = 0;
};

}  // namespace lockstep
