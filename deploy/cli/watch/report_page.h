// A run as one HTML file: the status page with its style, scripts and data inside. Several runs are
// one page with a curve for each. The page loads nothing, and its content security policy lets no
// other script run.
//
// Thread-safety: free functions without state.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

// JSON objects, as the paths below /api/v1/ give them.
struct ReportData {
  std::string status;
  std::string history;
  std::string events;
  std::string job;
  std::string hang = "null";  // hang_report()
};

// `made`: time of making: UTC, ISO 8601.
std::string report_page(const ReportData& data, const std::string& made);

struct NamedReport {
  std::string name;
  ReportData data;
};

// One page that compares several runs.
std::string comparison_page(const std::vector<NamedReport>& runs, const std::string& made);

// JSON that ends no <script> and begins no comment in HTML: it escapes '<', which only strings
// hold.
std::string json_in_html(std::string_view json);

}  // namespace lockstep
