// The findings of a rank before the training, and their text.
//
// Thread-safety: values and free functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "comm/base/status.h"

namespace lockstep::preflight {

enum class Grade { kGood, kWarning, kBad };

struct Finding {
  std::string subject;  // "directory", "name", "route", "port", "token", "version", "clock"
  Grade grade = Grade::kGood;
  std::string text;  // what was seen; for a bad finding also the remedy
  bool operator==(const Finding&) const = default;
};

struct Report {
  uint32_t rank = 0;
  std::string host;
  std::vector<Finding> findings;
  bool operator==(const Report&) const = default;
};

std::string to_json(const Report& report);
// kUsage for text that is no finding: others may write to the directory, too.
Result<Report> report_from_json(const std::string& text);

Grade worst_of(const Report& report);

// A line for each finding with the ranks that have it; equal findings share a line.
std::string table_of(const std::vector<Report>& reports);

}  // namespace lockstep::preflight
