#include "comm/tls/tls_identity.h"

#include "comm/base/clock.h"

namespace lockstep::rpc {

TlsIdentity::TlsIdentity(std::string directory, FileWatch watch,
                         std::shared_ptr<const TlsContext> context, Logger& logger)
    : directory_(std::move(directory)),
      logger_(logger),
      watch_(std::move(watch)),
      context_(std::move(context)) {}

Result<std::shared_ptr<TlsIdentity>> TlsIdentity::open(const std::string& directory,
                                                       Logger& logger) {
  FileWatch watch(TlsContext::paths(directory));  // looks before the files are read
  LOCKSTEP_ASSIGN_OR_RETURN(auto context, TlsContext::load(directory));
  return std::shared_ptr<TlsIdentity>(
      new TlsIdentity(directory, std::move(watch), std::move(context), logger));
}

std::shared_ptr<const TlsContext> TlsIdentity::context() {
  std::lock_guard lock(mutex_);
  if (!watch_.has_changed(SystemClock().monotonic_ms())) return context_;
  // Files that somebody replaces one after the other do not fit together for a moment. The next
  // change makes us read them again.
  auto loaded = TlsContext::load(directory_);
  if (loaded.is_ok()) {
    context_ = std::move(loaded).value();
    logger_.info("tls_read_again", "the certificate in " + directory_ + " was read again");
  } else {
    logger_.warn("tls_not_read_again", "keeping the old certificate: " + loaded.status().message());
  }
  return context_;
}

double TlsIdentity::expiry_seconds() {
  const int64_t left_ms = context()->expires_s() * 1000 - SystemClock().wall_ms();
  return static_cast<double>(left_ms) / 1000.0;
}

Result<std::shared_ptr<TlsIdentity>> open_tls(const std::string& directory, Logger& logger) {
  if (directory.empty()) return std::shared_ptr<TlsIdentity>();
  return TlsIdentity::open(directory, logger);
}

}  // namespace lockstep::rpc
