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

// Fields of a machine's DMI tables.
struct Dmi {
  std::string system_vendor;
  std::string product;
  std::string bios_version;
  std::string chassis_tag;
};

Cloud cloud_of(const Dmi& dmi);

struct CloudNotice {
  std::string what;               // for people: "AWS spot interruption: terminate"
  std::optional<int64_t> left_s;  // until the machine goes; none: the cloud does not say
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

// The questions of a cloud, the gravest first. They read no notice from text that is no answer.
std::vector<NoticeQuestion> questions_of(Cloud cloud);

}  // namespace lockstep
