// Helpers that audit_text.cc and audit_json.cc share.
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

#include "coordinator/audit/audit.h"

namespace lockstep::coordinator {

inline std::string hex(uint64_t value) {
  char text[20];
  std::snprintf(text, sizeof(text), "%016llx", static_cast<unsigned long long>(value));
  return text;
}

inline uint64_t whole_epochs(const AuditReport& report) {
  uint64_t whole = 0;
  for (const AuditedEpoch& epoch : report.epochs) whole += epoch.is_whole() ? 1 : 0;
  return whole;
}

}  // namespace lockstep::coordinator
