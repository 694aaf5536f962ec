#include "deploy/kubernetes/render/manifest_request.h"

#include <algorithm>
#include <cctype>
#include <string_view>

#include "comm/base/byte_units.h"
#include "comm/base/limits.h"

namespace lockstep::k8s {
namespace {

// "-coordinator-0-0" and the five letters of a pod's own name come after it, in 63.
constexpr size_t kNameBytes = 40;
constexpr size_t kConfigMapBytes = kMib;

bool is_lower_alnum(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

bool is_label(std::string_view name, size_t most) {
  return !name.empty() && name.size() <= most && name.front() >= 'a' && name.front() <= 'z' &&
         is_lower_alnum(name.back()) && std::all_of(name.begin(), name.end(), [](char c) {
           return is_lower_alnum(c) || c == '-';
         });
}

// "4", "500m", "16Gi".
bool is_quantity(std::string_view value) {
  const size_t digits = std::min(value.find_first_not_of("0123456789."), value.size());
  static constexpr std::string_view kUnits[] = {"",  "m",  "k",  "M",  "G",
                                                "T", "Ki", "Mi", "Gi", "Ti"};
  return digits > 0 && std::isdigit(static_cast<unsigned char>(value[0])) != 0 &&
         std::count(value.begin(), value.end(), '.') <= 1 &&
         std::find(std::begin(kUnits), std::end(kUnits), value.substr(digits)) != std::end(kUnits);
}

// Registries, paths, tags and digests; nothing that YAML or a shell could take for something else.
bool is_image(std::string_view image) {
  return !image.empty() && image.size() <= 512 &&
         std::all_of(image.begin(), image.end(), [](unsigned char c) {
           return std::isalnum(c) != 0 ||
                  std::string_view("./:@_-").find(static_cast<char>(c)) != std::string_view::npos;
         });
}

Status wrong(const std::string& option, const std::string& value, const std::string& should) {
  return Status(Code::kUsage, option + " is \"" + value + "\" but must be " + should);
}

}  // namespace

Status check(const ManifestRequest& r) {
  const std::string label = "lower-case letters, digits and '-', beginning with a letter, at most ";
  if (!is_label(r.name, kNameBytes)) return wrong("--name", r.name, label + "40");
  for (const auto& [option, value] :
       {std::pair{"--namespace", r.name_space}, std::pair{"--queue", r.queue},
        std::pair{"--scheduler", r.scheduler}, std::pair{"--data-claim", r.data_claim}})
    if (!value.empty() && !is_label(value, 63)) return wrong(option, value, label + "63");
  if (!is_label(r.run_claim, 63)) return wrong("--run-claim", r.run_claim, label + "63");
  if (!is_image(r.image)) return wrong("--image", r.image, "as in registry.example/lockstep:0.3");
  if (!is_quantity(r.cpu)) return wrong("--cpu", r.cpu, "a quantity, as in 4 or 500m");
  if (!r.memory.empty() && !is_quantity(r.memory))
    return wrong("--memory", r.memory, "a quantity, as in 16Gi");
  if (r.workers == 0 || r.workers > limits::kMembers || r.workers % r.workers_of_pod() != 0)
    return wrong("--workers", std::to_string(r.workers),
                 "a multiple of " + std::to_string(r.workers_of_pod()) +
                     " (--gpus), because each pod has so many workers");
  if (!r.python.empty() && !r.is_script)
    return Status(Code::kUsage,
                  "--python is given, but the job is no script; leave it out, or name a SCRIPT.py");
  if (r.job_text.size() >= kConfigMapBytes)
    return Status(Code::kUsage, "the job file is too large for a ConfigMap, which holds 1 MiB");
  return Status::ok();
}

std::string name_from(const std::string& job) {
  std::string name;
  for (const char c : job) {
    const char lower = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    if (is_lower_alnum(lower))
      name += lower;
    else if (!name.empty() && name.back() != '-')
      name += '-';
  }
  name.resize(std::min(name.size(), kNameBytes));
  while (!name.empty() && name.back() == '-') name.pop_back();
  if (!name.empty() && name.front() >= '0' && name.front() <= '9')
    name = ("run-" + name).substr(0, kNameBytes);
  return name;
}

}  // namespace lockstep::k8s
