// A run as one HTML file: the status page with its style, its scripts and what it shows inside. It
// takes nothing from elsewhere, and a policy in it lets no other script run.
//
// Thread-safety: free functions without state.
#pragma once

#include <string>
#include <string_view>

namespace lockstep {

// The texts are JSON objects, as their paths below /api/v1/ give them.
struct ReportData {
  std::string status;
  std::string history;
  std::string events;
  std::string made;  // when: UTC, ISO 8601
};

std::string report_page(const ReportData& data);

// JSON that ends no <script> and begins no comment in HTML: '<' is written as an escape, which only
// strings can contain.
std::string json_in_html(std::string_view json);

}  // namespace lockstep
