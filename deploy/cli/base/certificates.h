// A certificate authority of one run, for users who have no authority of their own.
//
//   DIR/ca.crt, ca.key    the authority; made once. A holder of ca.key can join the run
//   DIR/tls.crt, tls.key  a certificate for hosts, and its key; made again each time
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
  std::vector<std::string> hosts;  // names or numeric addresses, in addition to loopback's
  int64_t valid_seconds = 0;       // never longer than the authority
};

struct IssuedCertificate {
  std::vector<std::string> hosts;  // of this certificate and of the one before it
  bool is_new_authority = false;
  std::string ends;  // "2027-11-22 20:00 UTC"
};

// kUsage if a host is none. kConfig, with the remedy, if the existing authority cannot be used.
Result<IssuedCertificate> issue_certificate(const CertificateRequest& request);

}  // namespace lockstep
