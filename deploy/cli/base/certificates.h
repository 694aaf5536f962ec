// A run's own authority, and certificates of it, for whoever has nobody that issues them.
//
//   DIR/ca.crt, ca.key    the authority; made once. Who has ca.key can join the run
//   DIR/tls.crt, tls.key  a certificate for hosts, and its key; made anew each time
//
// ECDSA on P-256. Keys can be read by their owner alone.
//
// Thread-safety: free functions without state.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "comm/base/status.h"

namespace lockstep {

struct CertificateRequest {
  std::string directory;
  std::vector<std::string> hosts;  // names or numeric addresses, beside those of loopback
  int64_t valid_seconds = 0;       // never longer than the authority
};

struct IssuedCertificate {
  std::vector<std::string> hosts;  // all for whom it is: those of the one before, too
  bool is_new_authority = false;
  std::string ends;  // "2027-11-22 20:00 UTC"
};

// kUsage for what is no host; kConfig when the authority that is there cannot be used, with what to
// do about it.
Result<IssuedCertificate> issue_certificate(const CertificateRequest& request);

}  // namespace lockstep
