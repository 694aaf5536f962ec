// A node's proof of identity: the three files that cert-manager's secrets have.
//
//   DIR/ca.crt   the certificates of the run's authority; the node believes no other authority
//   DIR/tls.crt  its own certificate, then those between it and the authority
//   DIR/tls.key  its private key, which its owner alone may read
//
// TLS 1.3 and nothing older, without tickets or early data: nothing of an earlier connection can be
// replayed.
//
// Thread-safety: immutable; any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "comm/base/status.h"

struct ssl_ctx_st;
struct bio_method_st;

namespace lockstep::rpc {

class TlsContext {
 public:
  // kNoInput if a file is missing. kConfig, with what to do about it, if others can read the key,
  // the files do not belong together, or a certificate is not valid now.
  static Result<std::shared_ptr<const TlsContext>> load(const std::string& directory);

  // For calling a server that is not ours. One PEM file has the authorities to believe, and we show
  // no certificate. kNoInput, kConfig.
  static Result<std::shared_ptr<const TlsContext>> load_authority(const std::string& path);
  ~TlsContext();
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

  // The files of a directory that load() reads.
  static std::vector<std::string> paths(const std::string& directory);

  // The end of our certificate, or of one above it, if earlier: seconds since 1970 UTC; 0 without
  // one.
  int64_t expires_s() const { return expires_s_; }

  // True if our certificate is for this host name or numeric address. REQUIRES: load().
  bool is_for(const std::string& host) const;

  // For the adapters in this folder.
  ssl_ctx_st* native() const { return context_; }
  const bio_method_st* socket_method() const { return socket_method_; }

 private:
  TlsContext();
  Status read(const std::string& directory);
  Status use_own(const std::string& directory);
  Status use_authority(const std::string& path, const char* mend);
  Status check_chain(const std::string& directory);

  ssl_ctx_st* context_ = nullptr;
  bio_method_st* socket_method_ = nullptr;
  int64_t expires_s_ = 0;
};

}  // namespace lockstep::rpc
