#include "deploy/cli/watch/report_page.h"

#include <array>
#include <span>

#include "comm/base/check.h"
#include "comm/base/hash.h"
#include "comm/base/log.h"
#include "comm/base/text/base64.h"
#include "coordinator/page/page.h"

namespace lockstep {
namespace {

constexpr std::array kReportScripts = {"/format.js", "/plots.js", "/view.js", "/hang.js",
                                       "/report.js"};
constexpr std::array kComparisonScripts = {"/format.js", "/plots.js", "/compare.js"};
constexpr std::string_view kStyleTag = "<link rel=\"stylesheet\" href=\"/page.css\">";
constexpr std::string_view kFirstScript = "<script ";
constexpr std::string_view kHeadEnd = "</head>";
constexpr std::string_view kBodyEnd = "</body>";

// The name that a content security policy has for an inline text that it allows.
std::string source_of(std::string_view text) {
  return " 'sha256-" + base64(sha256(text)) + "'";
}

size_t find(std::string_view text, std::string_view part) {
  const size_t at = text.find(part);
  LOCKSTEP_CHECK(at != std::string_view::npos, "page.html has the tags that are replaced");
  return at;
}

// The members of the object that a script gets.
std::string members_of(const ReportData& data) {
  return "\"status\":" + data.status + ",\"history\":" + data.history +
         ",\"events\":" + data.events + ",\"job\":" + data.job + ",\"hang\":" + data.hang;
}

// The page with its style and these scripts inside, and `json` for them.
std::string page_with(const std::string& json, std::span<const char* const> paths) {
  const std::string_view page = page::content_of("/");
  const std::string_view style = page::content_of("/page.css");
  std::string policy =
      "default-src 'none'; img-src data:; style-src" + source_of(style) + "; script-src";
  std::string scripts =
      "<script type=\"application/json\" id=\"data\">" + json_in_html(json) + "</script>\n";
  for (const char* path : paths) {
    const std::string_view script = page::content_of(path);
    policy += source_of(script);
    scripts.append("<script>").append(script).append("</script>\n");
  }
  const size_t style_at = find(page, kStyleTag);
  const size_t head_end = find(page, kHeadEnd);
  const size_t body_end = find(page, kBodyEnd);
  LOCKSTEP_CHECK(find(page, kFirstScript) > style_at, "scripts are the last of the head");
  std::string out(page.substr(0, style_at));
  out += "<meta http-equiv=\"Content-Security-Policy\" content=\"" + policy + "\">\n<style>";
  out.append(style).append("</style>\n").append(page.substr(head_end, body_end - head_end));
  return out + scripts + std::string(page.substr(body_end));
}

}  // namespace

std::string json_in_html(std::string_view json) {
  std::string out;
  out.reserve(json.size());
  for (const char c : json) {
    if (c == '<')
      out += "\\u003c";
    else
      out += c;
  }
  return out;
}

std::string report_page(const ReportData& data, const std::string& made) {
  return page_with("{\"made\":\"" + json_escape(made) + "\"," + members_of(data) + "}",
                   kReportScripts);
}

std::string comparison_page(const std::vector<NamedReport>& runs, const std::string& made) {
  std::string json = "{\"made\":\"" + json_escape(made) + "\",\"runs\":[";
  for (const NamedReport& run : runs) {
    if (&run != &runs.front()) json += ",";
    json += "{\"name\":\"" + json_escape(run.name) + "\"," + members_of(run.data) + "}";
  }
  return page_with(json + "]}", kComparisonScripts);
}

}  // namespace lockstep
