#include "coordinator/trainer_status/target.h"

#include <algorithm>

namespace lockstep::trainer {
namespace {

constexpr std::string_view kHttps = "https://";
constexpr std::string_view kHttp = "http://";

// Nothing that would end a line of the request, or that we would have to escape.
bool is_plain(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c > ' ' && c < '\x7f'; });
}

// The URL itself is not shown: one that we cannot read may hold anything.
Status bad_url(const std::string& why) {
  return Status(Code::kConfig, std::string(kUrlVariable) + " " + why +
                                   "; Kubeflow Trainer sets it to https://HOST:PORT/PATH");
}

// As a URL has it: the port may be missing, IPv6 stands in brackets.
Result<rpc::Address> parse_authority(std::string_view text, uint16_t port) {
  const size_t colon = text.rfind(':');
  const size_t bracket = text.rfind(']');
  const bool has_port =
      colon != std::string_view::npos && (bracket == std::string_view::npos || bracket < colon);
  const auto address = rpc::parse_address(
      has_port ? std::string(text) : std::string(text) + ":" + std::to_string(port));
  // To OpenSSL a host that begins with a dot is any host of that domain.
  if (!address.is_ok() || address->port == 0 || address->host.front() == '.')
    return bad_url("names no host and port");
  return *address;
}

}  // namespace

Result<Target> parse_url(std::string_view url) {
  if (url.size() > kUrlBytes)
    return bad_url("is longer than " + std::to_string(kUrlBytes) + " bytes");
  if (!is_plain(url)) return bad_url("has a space or a byte that is not printable ASCII");
  Target target;
  target.is_tls = url.starts_with(kHttps);
  if (!target.is_tls && !url.starts_with(kHttp)) return bad_url("does not begin with https://");
  url.remove_prefix(target.is_tls ? kHttps.size() : kHttp.size());
  const size_t end = std::min(url.find_first_of("/?#"), url.size());
  const std::string_view rest = url.substr(end);
  if (rest.find('#') != std::string_view::npos) return bad_url("has a fragment (#)");
  LOCKSTEP_ASSIGN_OR_RETURN(target.address,
                            parse_authority(url.substr(0, end), target.is_tls ? 443 : 80));
  if (!target.is_tls && !rpc::is_loopback_host(target.address.host))
    return bad_url("leads to another machine without TLS, where the token could be read");
  target.path = rest.starts_with('/') ? std::string(rest) : "/" + std::string(rest);
  return target;
}

Result<std::optional<Target>> target_of(const std::function<const char*(const char*)>& variable) {
  const auto value = [&](const char* name) {
    const char* text = variable(name);
    return std::string(text == nullptr ? "" : text);
  };
  const std::string url = value(kUrlVariable);
  if (url.empty()) return std::optional<Target>();
  LOCKSTEP_ASSIGN_OR_RETURN(Target target, parse_url(url));
  target.authority_path = value(kAuthorityVariable);
  target.token_path = value(kTokenVariable);
  for (const char* name : {kAuthorityVariable, kTokenVariable}) {
    const bool is_needed = target.is_tls || name == kTokenVariable;
    if (is_needed && value(name).empty())
      return Status(Code::kConfig, std::string(kUrlVariable) + " is set, but " + name +
                                       " (the path of a file) is not; Kubeflow Trainer sets both");
  }
  return std::optional<Target>(std::move(target));
}

}  // namespace lockstep::trainer
