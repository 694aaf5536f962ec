#include "metrics/probes/tls_probe.h"

#include <prometheus/gauge.h>

namespace lockstep {

void TlsProbe::expires_in(double seconds) {
  families_
      .gauge("lockstep_tls_expiry_seconds",
             "Time until the certificate of comm.tls expires; negative afterwards.")
      .Set(seconds);
}

}  // namespace lockstep
