// What a cloud's metadata service says about the machine's own end: notices of AWS, GCP and Azure.
//
// Sources: AWS, "Spot Instance interruption notices" and "EC2 instance rebalance recommendations";
// Google Cloud, "Preemptible VM" and "Host events"; Azure, "Scheduled Events for Linux VMs".
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

enum class Cloud : uint8_t { kNone, kAws, kGcp, kAzure };

const char* text_of(Cloud cloud);  // "aws"; "none"

// The cloud of a machine, by its DMI fields: vendor and product of the system, and the board's
// vendor.
Cloud cloud_of(std::string_view system_vendor, std::string_view product,
               std::string_view board_vendor);

struct CloudNotice {
  std::string what;               // for people: "AWS spot interruption: terminate"
  std::optional<int64_t> left_s;  // until the machine goes; none: it is not said
  bool is_certain = true;         // a fact, not a forecast
  bool operator==(const CloudNotice&) const = default;
};

// A question for the service, below its address, and how its answer is read. `now_s`: since 1970.
// `own_name`: of this machine, as Azure calls it.
struct NoticeQuestion {
  std::string path;
  std::vector<std::string> headers;
  std::optional<CloudNotice> (*read)(std::string_view answer, int64_t now_s,
                                     const std::string& own_name);
};

// The questions of a cloud, the gravest first. Text that is no answer is no notice.
std::vector<NoticeQuestion> questions_of(Cloud cloud);

}  // namespace lockstep
