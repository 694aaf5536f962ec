#include "data/source/url.h"

#include <algorithm>
#include <cctype>
#include <cstring>

namespace lockstep::source {

bool is_url(std::string_view path) {
  return path.starts_with("http://") || path.starts_with("https://") || path.starts_with("s3://");
}

bool has_scheme(std::string_view path) {
  const std::string_view scheme = path.substr(0, std::min(path.find("://"), path.size()));
  return !scheme.empty() && scheme.size() < path.size() &&
         std::ranges::all_of(scheme, [](unsigned char c) {
           return std::isalnum(c) != 0 || c == '+' || c == '-' || c == '.';
         });
}

Result<std::string> checked_url(const std::string& url) {
  const size_t begin = url.find("://") + 3;
  const std::string host = url.substr(begin, url.find('/', begin) - begin);
  // The address itself is not repeated: what is wrong with it may be a secret.
  if (host.find('@') != std::string::npos)
    return Status(
        Code::kUsage,
        "the address of the data holds a user or a password, which would be readable in the job "
        "file; use s3:// with credentials from the environment, or a server that needs "
        "none");
  const bool is_s3 = url.starts_with("s3://");
  if (!is_s3 && url.find_first_of("?#") != std::string::npos)
    return Status(Code::kUsage,
                  "the address of the data holds a query or a fragment, but Lockstep appends file "
                  "names to it; name a directory or a file, without '?' and '#'");
  if (host.empty()) return Status(Code::kUsage, "the address " + url + " of the data has no host");
  const bool is_name = std::all_of(host.begin(), host.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || std::strchr(".-_:[]", c) != nullptr;
  });
  const bool is_odd = std::any_of(url.begin(), url.end(), [](char c) {
    return static_cast<unsigned char>(c) < 0x20 || c == 0x7f || c == '\\';
  });
  if (is_odd || !is_name)
    return Status(Code::kUsage,
                  "the address of the data holds characters that an address cannot have");
  std::string trimmed = url;
  while (trimmed.size() > begin + host.size() && trimmed.ends_with('/')) trimmed.pop_back();
  return trimmed;
}

}  // namespace lockstep::source
