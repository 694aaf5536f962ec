// Shows how long the certificate of comm.tls still holds. Without a certificate there is no such
// series.
//
// Thread-safety: one thread.
#pragma once

#include "metrics/base/families.h"

namespace lockstep {

class TlsProbe {
 public:
  explicit TlsProbe(Families& families) : families_(families) {}

  // Negative after the end.
  void expires_in(double seconds);

 private:
  Families& families_;
};

}  // namespace lockstep
