// TLS over a connected, non-blocking socket, for whoever waits for it in his own way. Both ends
// show a certificate of the run's authority; who calls also checks that it is for the host that he
// has called. The handshake is part of the first read() or write().
//
// Invariants:
//  1. No byte is given by read() before the peer is proven.
//  2. A call that wants the socket to become readable or writable is to be repeated then; of
//     write(), the bytes may lie elsewhere by then.
//  3. After kEnd and kBroken the connection is over.
//  4. No key protects more than key_bytes of what is written: well below the limit of AES-GCM in
//     RFC 8446, section 5.5 (2^24.5 records of 16 KiB).
//
// Thread-safety: one thread at a time. Does not own the descriptor; never raises SIGPIPE.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "comm/base/status.h"
#include "comm/tls/tls_context.h"

struct ssl_st;

namespace lockstep::rpc {

struct IoResult {
  enum class State { kDone, kWantsRead, kWantsWrite, kEnd, kBroken };
  State state = State::kDone;
  size_t bytes = 0;           // of kDone: at least 1
  Status why = Status::ok();  // of kBroken; kRefused when one end does not believe the other
};

class TlsSocket {
 public:
  // The side that was called: every caller must show a certificate.
  static std::unique_ptr<TlsSocket> accept(std::shared_ptr<const TlsContext> context, int fd);
  // The side that calls `host`, a name or a numeric address.
  static std::unique_ptr<TlsSocket> connect(std::shared_ptr<const TlsContext> context, int fd,
                                            const std::string& host);
  // The side that calls who may have any address: a certificate of the authority is enough. For
  // callers that prove more inside, and bind the proof to binding().
  static std::unique_ptr<TlsSocket> connect_to_any(std::shared_ptr<const TlsContext> context,
                                                   int fd);
  ~TlsSocket();
  TlsSocket(const TlsSocket&) = delete;
  TlsSocket& operator=(const TlsSocket&) = delete;

  // Who calls says its first word now, not with the first read() or write(): who is called waits
  // for it.
  void begin();

  IoResult read(char* out, size_t bytes);
  IoResult write(const char* from, size_t bytes);

  // Lets go of it when the peer is proven, or with this object.
  void hold_until_proven(std::shared_ptr<void> held) { held_ = std::move(held); }

  // 32 bytes that only the two ends of this very connection know: tls-exporter of RFC 9266. A proof
  // that covers them is of no use on another connection. REQUIRES: a read() or write() was kDone.
  std::string binding() const;

  void set_key_bytes(uint64_t bytes) { key_bytes_ = bytes; }  // for tests
  uint32_t key_updates() const { return key_updates_; }       // of the direction that is written

  // Tells the peer that nothing more comes, as far as that leaves at once.
  void say_end();

 private:
  TlsSocket(std::shared_ptr<const TlsContext> context, int fd);
  IoResult result(int code, size_t bytes);
  Status why_broken(int error) const;

  void renew_key();

  std::shared_ptr<const TlsContext> context_;
  ssl_st* ssl_;
  std::shared_ptr<void> held_;
  uint64_t key_bytes_ = uint64_t{1} << 36;
  uint64_t written_bytes_ = 0;  // with the key of now
  uint32_t key_updates_ = 0;
};

// What a failed call of OpenSSL left behind, for people. Empties OpenSSL's queue of errors.
std::string tls_error_text(long verify_result);

}  // namespace lockstep::rpc
