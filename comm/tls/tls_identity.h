// A node's certificate over time. It reads its files (tls_context.h) again when they change. Open
// connections keep the old ones, later connections use the new ones. If new files cannot be used,
// it logs this once and keeps the old ones.
//
// Thread-safety: any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "comm/base/log.h"
#include "comm/tls/private_file.h"
#include "comm/tls/tls_context.h"

namespace lockstep::rpc {

class TlsIdentity {
 public:
  // Errors of TlsContext::load(). `logger` outlives this object.
  static Result<std::shared_ptr<TlsIdentity>> open(const std::string& directory, Logger& logger);

  // For the next connection.
  std::shared_ptr<const TlsContext> context();

  // The time until the certificate ends; negative afterwards.
  double expiry_seconds();

 private:
  TlsIdentity(std::string directory, FileWatch watch, std::shared_ptr<const TlsContext> context,
              Logger& logger);

  const std::string directory_;
  Logger& logger_;
  std::mutex mutex_;
  FileWatch watch_;
  std::shared_ptr<const TlsContext> context_;
};

// The identity of a job: null if comm.tls is empty.
Result<std::shared_ptr<TlsIdentity>> open_tls(const std::string& directory, Logger& logger);

}  // namespace lockstep::rpc
