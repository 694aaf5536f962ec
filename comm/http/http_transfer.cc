#include "comm/http/http_transfer.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <strings.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <string>
#include <string_view>

#include "comm/base/file.h"
#include "comm/base/limits.h"

namespace lockstep::http {
namespace {

// Notes where the named server is. False for a redirect that leads inside of another network.
bool may_ask(HttpTransfer& transfer, const std::string& address) {
  long redirects = 0;
  const char* url = nullptr;
  curl_easy_getinfo(transfer.curl, CURLINFO_REDIRECT_COUNT, &redirects);
  curl_easy_getinfo(transfer.curl, CURLINFO_EFFECTIVE_URL, &url);
  const AddressKind kind = kind_of(address);
  if (redirects == 0 || !transfer.first || may_redirect(*transfer.first, kind)) return true;
  transfer.broken_off = {
      Code::kRefused, "the server redirects to " + std::string(url == nullptr ? "" : url) + " (" +
                          address + "), which is " + text_of(kind) +
                          " that the server has no business with; if the data are there, name "
                          "that address in the job"};
  return false;
}

std::string address_text(const sockaddr& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const void* bytes =
      address.sa_family == AF_INET6
          ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in6&>(address).sin6_addr)
          : &reinterpret_cast<const sockaddr_in&>(address).sin_addr;
  return ::inet_ntop(address.sa_family, bytes, text.data(), text.size()) == nullptr ? ""
                                                                                    : text.data();
}

// Before a connection is made.
curl_socket_t on_socket(void* raw, curlsocktype, curl_sockaddr* to) {
  auto& transfer = *static_cast<HttpTransfer*>(raw);
  if (!may_ask(transfer, address_text(to->addr))) return CURL_SOCKET_BAD;
  return ::socket(to->family, to->socktype | SOCK_CLOEXEC, to->protocol);
}

// Before a request is sent, also over a connection that was there before.
int on_request(void* raw, char* to, char* from, int to_port, int from_port) {
  auto& transfer = *static_cast<HttpTransfer*>(raw);
  // If no program listens on the port, the kernel may take this very port for our own end.
  if (to_port == from_port && std::string_view(to) == from) {
    transfer.broken_off = {Code::kUnavailable, "cannot connect: " + errno_text(ECONNREFUSED)};
    return CURL_PREREQFUNC_ABORT;
  }
  if (!may_ask(transfer, to)) return CURL_PREREQFUNC_ABORT;
  if (!transfer.first) transfer.first = kind_of(to);
  return CURL_PREREQFUNC_OK;
}

bool is_error(const HttpTransfer& transfer) {
  long status = 0;
  curl_easy_getinfo(transfer.curl, CURLINFO_RESPONSE_CODE, &status);
  return status < 200 || status > 299;
}

size_t on_body(char* data, size_t one, size_t bytes, void* raw) {
  auto& transfer = *static_cast<HttpTransfer*>(raw);
  std::string& body = transfer.answer.body;
  const bool is_bad = is_error(transfer);
  const uint64_t most = is_bad ? limits::kHttpErrorBytes : transfer.request->most_bytes;
  const uint64_t room = most - std::min<uint64_t>(most, body.size());
  const size_t taken = std::min<uint64_t>(room, one * bytes);
  body.append(data, taken);
  if (taken == one * bytes || is_bad) return one * bytes;
  transfer.answer.is_longer = true;
  return 0;  // breaks it off
}

// Takes the last answer's headers: a redirect's answer before it does not count.
size_t on_header(char* data, size_t one, size_t bytes, void* raw) {
  auto& transfer = *static_cast<HttpTransfer*>(raw);
  HttpAnswer& answer = transfer.answer;
  std::string_view line(data, one * bytes);
  transfer.header_bytes += line.size();
  if (transfer.header_bytes > limits::kHttpAllHeaderBytes) {
    transfer.broken_off = {Code::kRefused, "the server's header is larger than the limit of " +
                                               std::to_string(limits::kHttpAllHeaderBytes) +
                                               " bytes"};
    return 0;  // breaks it off
  }
  if (line.starts_with("HTTP/")) {
    answer = HttpAnswer();
    transfer.has_header = false;
  }
  if (line == "\r\n" || line == "\n") transfer.has_header = true;
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos) return one * bytes;
  const std::string name(line.substr(0, colon));
  line.remove_prefix(colon + 1);
  while (!line.empty() && line.front() == ' ') line.remove_prefix(1);
  while (!line.empty() && (line.back() == '\r' || line.back() == '\n' || line.back() == ' '))
    line.remove_suffix(1);
  const auto is = [&](const char* wanted) { return ::strcasecmp(name.c_str(), wanted) == 0; };
  if (line.size() > limits::kHttpHeaderBytes) return one * bytes;
  if (is("etag")) answer.etag = line;
  if (is("last-modified")) answer.last_modified = line;
  if (is("content-range")) answer.content_range = line;
  if (is("content-encoding")) answer.is_encoded = !line.empty() && line != "identity";
  for (const std::string& kept : transfer.request->keeps)
    if (is(kept.c_str())) answer.kept[kept] = line;
  return one * bytes;
}

int on_progress(void* raw, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  return static_cast<HttpTransfer*>(raw)->stop->load() ? 1 : 0;
}

// Before a TLS handshake. libcurl checks that the certificate is for the URL's host.
CURLcode on_tls(CURL*, void* raw_context, void* raw) {
  auto* context = static_cast<SSL_CTX*>(raw_context);
  const rpc::TlsContext& ours = *static_cast<HttpTransfer*>(raw)->request->tls;
  SSL_CTX_set1_cert_store(context, SSL_CTX_get_cert_store(ours.native()));
  SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION);
  // A server that leaves without a word has ended its answer.
  SSL_CTX_set_options(context, SSL_OP_IGNORE_UNEXPECTED_EOF);
  return CURLE_OK;
}

}  // namespace

Status watch(HttpTransfer& transfer) {
  CURL* curl = transfer.curl;
  curl_easy_setopt(curl, CURLOPT_OPENSOCKETFUNCTION, on_socket);
  curl_easy_setopt(curl, CURLOPT_OPENSOCKETDATA, &transfer);
  curl_easy_setopt(curl, CURLOPT_PREREQFUNCTION, on_request);
  curl_easy_setopt(curl, CURLOPT_PREREQDATA, &transfer);
  curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, on_progress);
  curl_easy_setopt(curl, CURLOPT_XFERINFODATA, &transfer);
  curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, on_header);
  curl_easy_setopt(curl, CURLOPT_HEADERDATA, &transfer);
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_body);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &transfer);
  if (transfer.request->tls == nullptr) return Status::ok();
  curl_easy_setopt(curl, CURLOPT_SSL_CTX_DATA, &transfer);
  if (curl_easy_setopt(curl, CURLOPT_SSL_CTX_FUNCTION, on_tls) == CURLE_OK) return Status::ok();
  return {Code::kConfig,
          std::string("this machine's libcurl does TLS with ") +
              curl_version_info(CURLVERSION_NOW)->ssl_version +
              ", which cannot take the run's certificates; install the libcurl that uses OpenSSL "
              "(Debian: libcurl4)"};
}

}  // namespace lockstep::http
