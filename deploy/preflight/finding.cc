#include "deploy/preflight/finding.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

namespace lockstep::preflight {
namespace {

using nlohmann::json;

constexpr size_t kFindingsMost = 1024;
constexpr size_t kTextMost = 2000;

const char* const kGrades[] = {"good", "warning", "bad"};

Status no_report(const std::string& what) {
  return Status(Code::kUsage, "this is not a report of a preflight: " + what);
}

// Terminals obey control characters, and a report comes from elsewhere.
std::string printable(std::string text) {
  if (text.size() > kTextMost) text.resize(kTextMost);
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  return text;
}

Result<Finding> finding_from(const json& value) {
  Finding finding;
  finding.subject = printable(value.at("subject").get<std::string>());
  finding.text = printable(value.at("text").get<std::string>());
  const auto name = value.at("grade").get<std::string>();
  const auto* grade = std::find(std::begin(kGrades), std::end(kGrades), name);
  if (grade == std::end(kGrades)) return no_report("there is no grade '" + printable(name) + "'");
  finding.grade = static_cast<Grade>(grade - std::begin(kGrades));
  return finding;
}

// "ranks 0-2, 5".
std::string ranks_text(const std::vector<uint32_t>& ranks) {
  std::string text;
  for (size_t i = 0; i < ranks.size();) {
    size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    text += (text.empty() ? "" : ", ") + std::to_string(ranks[i]);
    if (last > i) text += "-" + std::to_string(ranks[last]);
    i = last + 1;
  }
  return (ranks.size() == 1 ? "rank " : "ranks ") + text;
}

}  // namespace

std::string to_json(const Report& report) {
  json findings = json::array();
  for (const Finding& finding : report.findings)
    findings.push_back({{"subject", finding.subject},
                        {"grade", kGrades[static_cast<int>(finding.grade)]},
                        {"text", finding.text}});
  const json value = {{"rank", report.rank}, {"host", report.host}, {"findings", findings}};
  return value.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
}

Result<Report> report_from_json(const std::string& text) {
  const json value = json::parse(text, nullptr, false);
  if (!value.is_object()) return no_report("it is not a JSON object");
  try {
    Report report;
    if (!value.at("rank").is_number_unsigned()) return no_report("its rank is not a number");
    report.rank = value.at("rank").get<uint32_t>();
    report.host = printable(value.at("host").get<std::string>());
    if (value.at("findings").size() > kFindingsMost) return no_report("it has too many findings");
    for (const json& item : value.at("findings")) {
      LOCKSTEP_ASSIGN_OR_RETURN(Finding finding, finding_from(item));
      report.findings.push_back(std::move(finding));
    }
    return report;
  } catch (const json::exception& error) {
    return no_report(error.what());
  }
}

Grade worst_of(const Report& report) {
  Grade worst = Grade::kGood;
  for (const Finding& finding : report.findings) worst = std::max(worst, finding.grade);
  return worst;
}

std::string table_of(const std::vector<Report>& reports) {
  // Order of first appearance, since std::map has none of it.
  std::vector<std::pair<const Finding*, std::vector<uint32_t>>> rows;
  std::map<std::pair<std::string, std::string>, size_t> row_of;
  for (const Report& report : reports) {
    for (const Finding& finding : report.findings) {
      const auto [at, is_new] = row_of.try_emplace({finding.subject, finding.text}, rows.size());
      if (is_new) rows.push_back({&finding, {}});
      auto& ranks = rows[at->second].second;
      if (ranks.empty() || ranks.back() != report.rank) ranks.push_back(report.rank);
    }
  }
  std::string out;
  for (const auto& [finding, ranks] : rows) {
    const char* mark = finding->grade == Grade::kGood      ? "ok     "
                       : finding->grade == Grade::kWarning ? "warning"
                                                           : "FAILED ";
    std::string subject = finding->subject;
    subject.resize(std::max<size_t>(subject.size(), 9), ' ');
    out +=
        std::string(mark) + "  " + subject + "  " + ranks_text(ranks) + ": " + finding->text + "\n";
  }
  return out;
}

}  // namespace lockstep::preflight
