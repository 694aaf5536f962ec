#include "deploy/agent/cloud/cloud_notice.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "comm/base/text/moment.h"
#include "comm/base/text/printable.h"

namespace lockstep {
namespace {

using nlohmann::json;

constexpr size_t kMostBytes = 64;  // of the service's own words in a message

std::optional<int64_t> seconds_until(const std::string& text, const char* form, int64_t now_s) {
  const auto moment = parse_moment(text, form);
  return moment ? std::optional(std::max<int64_t>(0, *moment - now_s)) : std::nullopt;
}

// A member that is text, without control characters; empty if it is not there.
std::string text_in(const json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_string()) return "";
  return printable(found->get<std::string>().substr(0, kMostBytes));
}

json parsed(std::string_view answer) {
  json value = json::parse(answer, nullptr, /*allow_exceptions=*/false);
  return value.is_object() ? value : json::object();
}

// {"action": "terminate", "time": "2026-12-01T13:41:49Z"}
std::optional<CloudNotice> aws_interruption(std::string_view answer, int64_t now_s,
                                            const std::string&) {
  const json said = parsed(answer);
  const std::string action = text_in(said, "action");
  if (action != "terminate" && action != "stop" && action != "hibernate") return std::nullopt;
  return CloudNotice{"AWS spot interruption: " + action,
                     seconds_until(text_in(said, "time"), "%Y-%m-%dT%H:%M:%SZ", now_s)};
}

// {"noticeTime": "2026-12-01T13:41:49Z"}
std::optional<CloudNotice> aws_rebalance(std::string_view answer, int64_t, const std::string&) {
  if (text_in(parsed(answer), "noticeTime").empty()) return std::nullopt;
  return CloudNotice{"AWS rebalance recommendation", std::nullopt, /*is_certain=*/false};
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.remove_suffix(1);
  return text;
}

std::optional<CloudNotice> gcp_preempted(std::string_view answer, int64_t, const std::string&) {
  constexpr int64_t kSeconds = 30;
  if (trimmed(answer) != "TRUE") return std::nullopt;
  return CloudNotice{"GCP preemption", kSeconds};
}

// 60 s before, or an hour where the machine has GPUs. One that is moved while it runs needs
// nothing.
std::optional<CloudNotice> gcp_maintenance(std::string_view answer, int64_t, const std::string&) {
  if (trimmed(answer) != "TERMINATE_ON_HOST_MAINTENANCE") return std::nullopt;
  return CloudNotice{"GCP host maintenance", std::nullopt};
}

// {"Events": [{"EventType": "Preempt", "EventStatus": "Scheduled", "Resources": ["vm-3"],
//              "NotBefore": "Tue, 01 Dec 2026 13:41:49 GMT"}]}, of all machines of a set.
std::optional<CloudNotice> azure_event(std::string_view answer, int64_t now_s,
                                       const std::string& own_name) {
  constexpr std::array kGoes = {"Preempt", "Terminate", "Reboot", "Redeploy"};
  const json said = parsed(answer);
  const auto events = said.find("Events");
  if (events == said.end() || !events->is_array()) return std::nullopt;
  for (const json& event : *events) {
    if (!event.is_object()) continue;
    const std::string type = text_in(event, "EventType");
    const auto resources = event.find("Resources");
    const bool is_ours = resources != event.end() && resources->is_array() &&
                         std::ranges::any_of(*resources, [&](const json& name) {
                           return name.is_string() && name.get<std::string>() == own_name;
                         });
    if (!is_ours || std::ranges::find(kGoes, type) == kGoes.end()) continue;
    return CloudNotice{"Azure scheduled event: " + type,
                       seconds_until(text_in(event, "NotBefore"), kHttpDate, now_s)};
  }
  return std::nullopt;
}

}  // namespace

const char* text_of(Cloud cloud) {
  switch (cloud) {
    case Cloud::kNone:
      return "none";
    case Cloud::kAws:
      return "aws";
    case Cloud::kGcp:
      return "gcp";
    case Cloud::kAzure:
      return "azure";
  }
  return "none";
}

Cloud cloud_of(const Dmi& dmi) {
  // Azure gives all its machines this tag; other Hyper-V hosts have the same vendor and product.
  constexpr std::string_view kAzureTag = "7783-7084-3265-9085-8269-3286-77";
  const auto has = [](const std::string& text, const char* word) {
    return text.find(word) != std::string::npos;
  };
  // Older machines of AWS are Xen's, and say it in the BIOS: "4.2.amazon".
  if (has(dmi.system_vendor, "Amazon EC2") || has(dmi.bios_version, "amazon")) return Cloud::kAws;
  if (has(dmi.product, "Google Compute Engine")) return Cloud::kGcp;
  if (dmi.chassis_tag.starts_with(kAzureTag)) return Cloud::kAzure;
  return Cloud::kNone;
}

std::vector<NoticeQuestion> questions_of(Cloud cloud) {
  switch (cloud) {
    case Cloud::kNone:
      return {};
    case Cloud::kAws:
      return {{"/latest/meta-data/spot/instance-action", {}, aws_interruption},
              {"/latest/meta-data/events/recommendations/rebalance", {}, aws_rebalance}};
    case Cloud::kGcp:
      return {
          {"/computeMetadata/v1/instance/preempted", {"Metadata-Flavor: Google"}, gcp_preempted},
          {"/computeMetadata/v1/instance/maintenance-event",
           {"Metadata-Flavor: Google"},
           gcp_maintenance}};
    case Cloud::kAzure:
      return {
          {"/metadata/scheduledevents?api-version=2020-07-01", {"Metadata: true"}, azure_event}};
  }
  return {};
}

}  // namespace lockstep
