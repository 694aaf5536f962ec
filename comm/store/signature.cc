#include "comm/store/signature.h"

#include <time.h>

#include <algorithm>
#include <array>
#include <map>

#include "comm/base/hash.h"
#include "comm/base/text/lower_case.h"

namespace lockstep::store {
namespace {

constexpr std::string_view kAlgorithm = "AWS4-HMAC-SHA256";

struct UrlParts {
  std::string host;   // with its port, unless that is the scheme's own
  std::string path;   // as it is sent
  std::string query;  // as it is sent, without '?'
};

UrlParts parts_of(std::string_view url) {
  const bool is_tls = url.starts_with("https://");
  url.remove_prefix(std::min(url.find("://") + 3, url.size()));
  const size_t path = std::min(url.find_first_of("/?"), url.size());
  std::string host(url.substr(0, path));
  const std::string own = is_tls ? ":443" : ":80";  // which libcurl does not send
  if (host.ends_with(own)) host.erase(host.size() - own.size());
  url.remove_prefix(path);
  const size_t query = std::min(url.find('?'), url.size());
  return {std::move(host), query == 0 ? "/" : std::string(url.substr(0, query)),
          std::string(url.substr(std::min(query + 1, url.size())))};
}

std::string utc(int64_t now_s, const char* form) {
  const time_t seconds = now_s;
  tm parts{};
  std::array<char, 32> text{};
  ::gmtime_r(&seconds, &parts);
  return {text.data(), ::strftime(text.data(), text.size(), form, &parts)};
}

std::string_view bytes_of(const Digest256& digest) {
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

// The headers to sign, by their names in lower case.
std::map<std::string, std::string> signed_headers(const http::HttpRequest& request,
                                                  const std::string& host) {
  std::map<std::string, std::string> headers{{"host", host}};
  for (const std::string& line : request.headers) {
    const size_t colon = std::min(line.find(':'), line.size());
    const std::string name = lower_case(line.substr(0, colon));
    if (!name.starts_with("x-amz-")) continue;
    const size_t value = line.find_first_not_of(' ', std::min(colon + 1, line.size()));
    headers[name] = value == std::string::npos ? "" : line.substr(value);
  }
  return headers;
}

std::string signing_key(const Signer& signer, const std::string& day) {
  std::string key = "AWS4" + signer.keys.secret;
  for (const std::string& part : {day, signer.region, signer.service, std::string("aws4_request")})
    key = bytes_of(hmac_sha256(key, part));
  return key;
}

}  // namespace

void sign(http::HttpRequest& request, const Signer& signer) {
  const UrlParts url = parts_of(request.url);
  const std::string time = utc(signer.now_s, "%Y%m%dT%H%M%SZ");
  const std::string day = time.substr(0, time.find('T'));
  const bool is_kept_by_tls = request.url.starts_with("https://") && !request.body.empty();
  const std::string payload = is_kept_by_tls ? "UNSIGNED-PAYLOAD" : to_hex(sha256(request.body));
  request.headers.push_back("x-amz-content-sha256: " + payload);
  request.headers.push_back("x-amz-date: " + time);
  if (!signer.keys.session_token.empty())
    request.headers.push_back("x-amz-security-token: " + signer.keys.session_token);

  std::string lines;
  std::string names;
  for (const auto& [name, value] : signed_headers(request, url.host)) {
    lines.append(name).append(":").append(value).append("\n");
    names.append(names.empty() ? "" : ";").append(name);
  }
  const std::string canonical = std::string(name_of(request.method)) + "\n" + url.path + "\n" +
                                url.query + "\n" + lines + "\n" + names + "\n" + payload;
  const std::string scope = day + "/" + signer.region + "/" + signer.service + "/aws4_request";
  const std::string to_sign =
      std::string(kAlgorithm) + "\n" + time + "\n" + scope + "\n" + to_hex(sha256(canonical));
  request.headers.push_back(
      "Authorization: " + std::string(kAlgorithm) + " Credential=" + signer.keys.key_id + "/" +
      scope + ", SignedHeaders=" + names +
      ", Signature=" + to_hex(hmac_sha256(signing_key(signer, day), to_sign)));
}

}  // namespace lockstep::store
