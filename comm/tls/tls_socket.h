// TLS over a connected, non-blocking socket; each caller waits for the socket in its own way. Both
// ends show a certificate of the run's authority. The calling side also checks that the certificate
// is for the dialled host. The handshake is part of the first read() or write().
//
// Invariants:
//  1. read() gives no byte before the peer is proven.
//  2. If a call wants the socket to become readable or writable, repeat it when the socket is.
//     write()'s bytes may lie elsewhere by then.
//  3. After kEnd and kBroken the connection is over.
//  4. No key protects more than key_bytes of written bytes: well below the limit of AES-GCM in RFC
//     8446, section 5.5 (2^24.5 records of 16 KiB).
//
// Thread-safety: one thread at a time. Does not own the descriptor. Never raises SIGPIPE.
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
  size_t bytes = 0;           // with kDone: at least 1
  Status why = Status::ok();  // with kBroken; kRefused if one end does not believe the other
};

class TlsSocket {
 public:
  // The called side: every caller must show a certificate.
  static std::unique_ptr<TlsSocket> accept(std::shared_ptr<const TlsContext> context, int fd);
  // The calling side. `host` is a name or a numeric address.
  static std::unique_ptr<TlsSocket> connect(std::shared_ptr<const TlsContext> context, int fd,
                                            const std::string& host);
  // The calling side, for a peer at any address: a certificate of the authority is enough. For
  // callers that prove more inside, and bind the proof to binding().
  static std::unique_ptr<TlsSocket> connect_to_any(std::shared_ptr<const TlsContext> context,
                                                   int fd);
  ~TlsSocket();
  TlsSocket(const TlsSocket&) = delete;
  TlsSocket& operator=(const TlsSocket&) = delete;

  // Makes the calling side say its first word now, not with the first read() or write(): the called
  // side waits for it.
  void begin();

  IoResult read(char* out, size_t bytes);
  IoResult write(const char* from, size_t bytes);

  // Holds `held` until the peer is proven, or until this object ends.
  void hold_until_proven(std::shared_ptr<void> held) { held_ = std::move(held); }

  // 32 bytes that only the two ends of this very connection know: tls-exporter of RFC 9266. A proof
  // that covers them is useless on another connection. REQUIRES: a read() or write() returned
  // kDone.
  std::string binding() const;

  void set_key_bytes(uint64_t bytes) { key_bytes_ = bytes; }  // for tests
  uint32_t key_updates() const { return key_updates_; }       // of the written direction

  // Tells the peer that nothing more comes, if the message leaves at once.
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
  uint64_t written_bytes_ = 0;  // with the present key
  uint32_t key_updates_ = 0;
};

// The error that a failed call of OpenSSL left behind, for people. Empties OpenSSL's queue of
// errors.
std::string tls_error_text(long verify_result);

}  // namespace lockstep::rpc
