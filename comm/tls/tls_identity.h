// A node's certificate through time: its files (tls_context.h) are read again when they change.
// What was begun with the old ones goes on; what begins afterwards has the new ones. New files that
// cannot be used are said once, and the old ones stay.
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

  // Until the certificate ends; negative afterwards.
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

// That of a job: null where comm.tls is empty.
Result<std::shared_ptr<TlsIdentity>> open_tls(const std::string& directory, Logger& logger);

}  // namespace lockstep::rpc
