#include "data/source/stores/http_client.h"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <netinet/in.h>
#include <signal.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>

#include "comm/base/limits.h"
#include "data/source/stores/redirect_rule.h"

namespace lockstep::source {
namespace {

constexpr long kSlowBytesPerS = 1'024;

// OpenSSL writes to sockets in a way that raises SIGPIPE: here it stays with this thread.
class NoSigpipe {
 public:
  NoSigpipe() {
    sigset_t pipe;
    ::sigemptyset(&pipe);
    ::sigaddset(&pipe, SIGPIPE);
    ::pthread_sigmask(SIG_BLOCK, &pipe, &before_);
  }
  ~NoSigpipe() {
    if (::sigismember(&before_, SIGPIPE) == 0) {
      sigset_t pipe;
      ::sigemptyset(&pipe);
      ::sigaddset(&pipe, SIGPIPE);
      const timespec at_once{};
      (void)::sigtimedwait(&pipe, nullptr, &at_once);
    }
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  NoSigpipe(const NoSigpipe&) = delete;
  NoSigpipe& operator=(const NoSigpipe&) = delete;

 private:
  sigset_t before_{};
};

struct Transfer {
  const HttpRequest* request = nullptr;
  const std::atomic<bool>* stop = nullptr;
  CURL* curl = nullptr;
  HttpAnswer answer;
  std::optional<AddressKind> first = {};  // where the server is that the user named
  std::string refused = {};               // redirect that Lockstep does not follow
};

// Notes where the named server is. False for a redirect that leads inside of another network.
bool may_ask(Transfer& transfer, const std::string& address) {
  long redirects = 0;
  const char* url = nullptr;
  curl_easy_getinfo(transfer.curl, CURLINFO_REDIRECT_COUNT, &redirects);
  curl_easy_getinfo(transfer.curl, CURLINFO_EFFECTIVE_URL, &url);
  const AddressKind kind = kind_of(address);
  if (redirects == 0 || !transfer.first || may_redirect(*transfer.first, kind)) return true;
  transfer.refused = "the server redirects to " + std::string(url == nullptr ? "" : url) + " (" +
                     address + "), which is " + text_of(kind) +
                     " that the server has no business with; if the data are there, name that "
                     "address in the job";
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
  auto& transfer = *static_cast<Transfer*>(raw);
  if (!may_ask(transfer, address_text(to->addr))) return CURL_SOCKET_BAD;
  return ::socket(to->family, to->socktype | SOCK_CLOEXEC, to->protocol);
}

// Before a request is sent, also over a connection that was there before.
int on_request(void* raw, char* to, char*, int, int) {
  auto& transfer = *static_cast<Transfer*>(raw);
  if (!may_ask(transfer, to)) return CURL_PREREQFUNC_ABORT;
  if (!transfer.first) transfer.first = kind_of(to);
  return CURL_PREREQFUNC_OK;
}

bool is_error(const Transfer& transfer) {
  long status = 0;
  curl_easy_getinfo(transfer.curl, CURLINFO_RESPONSE_CODE, &status);
  return status < 200 || status > 299;
}

size_t on_body(char* data, size_t one, size_t bytes, void* raw) {
  auto& transfer = *static_cast<Transfer*>(raw);
  std::vector<uint8_t>& body = transfer.answer.body;
  const bool is_bad = is_error(transfer);
  const uint64_t most = is_bad ? limits::kHttpErrorBytes : transfer.request->most_bytes;
  const uint64_t room = most - std::min<uint64_t>(most, body.size());
  const size_t taken = std::min<uint64_t>(room, one * bytes);
  body.insert(body.end(), data, data + taken);
  if (taken == one * bytes || is_bad) return one * bytes;
  transfer.answer.is_longer = true;
  return 0;  // breaks it off
}

// Of the last answer, where there were redirects before.
size_t on_header(char* data, size_t one, size_t bytes, void* raw) {
  HttpAnswer& answer = static_cast<Transfer*>(raw)->answer;
  std::string_view line(data, one * bytes);
  if (line.starts_with("HTTP/")) answer = HttpAnswer();
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
  return one * bytes;
}

int on_progress(void* raw, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  return static_cast<Transfer*>(raw)->stop->load() ? 1 : 0;
}

Status failure_of(CURLcode code, const char* detail, uint32_t stall_s) {
  const std::string text = *detail != '\0' ? detail : curl_easy_strerror(code);
  switch (code) {
    case CURLE_OPERATION_TIMEDOUT:
      return {Code::kTimeout, "the server stalled: less than 1 KiB/s for " +
                                  std::to_string(stall_s) + " s, or no connection"};
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
      return {
          Code::kRefused,
          "the server's certificate is not trusted: " + text +
              "; if a private authority signed it, name that authority's file in SSL_CERT_FILE"};
    case CURLE_TOO_MANY_REDIRECTS:
    case CURLE_UNSUPPORTED_PROTOCOL:
      return {Code::kRefused,
              "the server redirects to an address that Lockstep does not follow: " + text};
    case CURLE_ABORTED_BY_CALLBACK:
      return {Code::kAborted, "reading was cancelled"};
    default:
      return {Code::kUnavailable, text};
  }
}

// Where distributions keep the authorities that they trust. libcurl knows the place of the one that
// it was built on, and a wheel carries it to others.
constexpr std::array kUsualCertificates = {
    "/etc/ssl/certs/ca-certificates.crt",  // Debian, Ubuntu, Arch
    "/etc/pki/tls/certs/ca-bundle.crt",    // Fedora, RHEL, Amazon Linux
    "/etc/ssl/ca-bundle.pem",              // openSUSE
    "/etc/ssl/cert.pem",                   // Alpine
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem"};

bool is_readable(const char* file) {
  return ::access(file, R_OK) == 0;
}

// Null: libcurl's own.
const char* certificates() {
  for (const char* name : {"SSL_CERT_FILE", "AWS_CA_BUNDLE", "CURL_CA_BUNDLE"})
    if (const char* file = std::getenv(name); file != nullptr && *file != '\0') return file;
  const char* built_in = curl_version_info(CURLVERSION_NOW)->cainfo;
  if (built_in != nullptr && is_readable(built_in)) return nullptr;
  const auto* const usual =
      std::find_if(kUsualCertificates.begin(), kUsualCertificates.end(), is_readable);
  return usual == kUsualCertificates.end() ? nullptr : *usual;
}

}  // namespace

struct HttpClient::Impl {
  const uint32_t stall_s;
  const std::atomic<bool>& stop;
  std::mutex mutex;
  std::vector<CURL*> idle;  // with a connection each

  CURL* take() {
    std::lock_guard lock(mutex);
    if (idle.empty()) return curl_easy_init();
    CURL* curl = idle.back();
    idle.pop_back();
    return curl;
  }

  void give_back(CURL* curl) {
    curl_easy_reset(curl);  // keeps its connection; forgets the secret
    std::lock_guard lock(mutex);
    idle.push_back(curl);
  }

  void set_bounds(CURL* curl, Transfer& transfer) const {
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, static_cast<long>(stall_s));
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, kSlowBytesPerS);
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, static_cast<long>(stall_s));
    curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, on_progress);
    curl_easy_setopt(curl, CURLOPT_XFERINFODATA, &transfer);
    const HttpRequest& request = *transfer.request;
    const bool is_https = request.url.starts_with("https://");
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS_STR, is_https ? "https" : "http,https");
    curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, request.follows_redirects ? 1L : 0L);
    curl_easy_setopt(curl, CURLOPT_MAXREDIRS, limits::kHttpRedirects);
    curl_easy_setopt(curl, CURLOPT_SSL_VERIFYPEER, 1L);
    curl_easy_setopt(curl, CURLOPT_SSL_VERIFYHOST, 2L);
    curl_easy_setopt(curl, CURLOPT_OPENSOCKETFUNCTION, on_socket);
    curl_easy_setopt(curl, CURLOPT_OPENSOCKETDATA, &transfer);
    curl_easy_setopt(curl, CURLOPT_PREREQFUNCTION, on_request);
    curl_easy_setopt(curl, CURLOPT_PREREQDATA, &transfer);
    if (const char* file = certificates()) curl_easy_setopt(curl, CURLOPT_CAINFO, file);
  }

  void set_request(CURL* curl, Transfer& transfer) const {
    const HttpRequest& request = *transfer.request;
    curl_easy_setopt(curl, CURLOPT_URL, request.url.c_str());
    curl_easy_setopt(curl, CURLOPT_PATH_AS_IS, 1L);
    curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
    curl_easy_setopt(curl, CURLOPT_USERAGENT, "lockstep");
    if (request.is_head) curl_easy_setopt(curl, CURLOPT_NOBODY, 1L);
    if (!request.range.empty()) curl_easy_setopt(curl, CURLOPT_RANGE, request.range.c_str());
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, &transfer);
    curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(curl, CURLOPT_HEADERDATA, &transfer);
    if (request.sign.empty()) return;
    curl_easy_setopt(curl, CURLOPT_AWS_SIGV4, request.sign.c_str());
    curl_easy_setopt(curl, CURLOPT_USERNAME, request.key_id.c_str());
    curl_easy_setopt(curl, CURLOPT_PASSWORD, request.secret.c_str());
  }
};

HttpClient::HttpClient(uint32_t stall_s, const std::atomic<bool>& stop)
    : impl_(new Impl{stall_s, stop, {}, {}}) {
  curl_global_init(CURL_GLOBAL_DEFAULT);  // counts, and locks by itself
}

HttpClient::~HttpClient() {
  for (CURL* curl : impl_->idle) curl_easy_cleanup(curl);
  curl_global_cleanup();
}

Result<HttpAnswer> HttpClient::send(const HttpRequest& request) {
  const NoSigpipe quiet;
  CURL* curl = impl_->take();
  if (curl == nullptr) return Status(Code::kInternal, "no memory for a request over HTTP");
  Transfer transfer{&request, &impl_->stop, curl, {}};
  char detail[CURL_ERROR_SIZE] = "";
  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, detail);
  impl_->set_bounds(curl, transfer);
  impl_->set_request(curl, transfer);
  curl_slist* headers = nullptr;
  for (const std::string& header : request.headers)
    headers = curl_slist_append(headers, header.c_str());
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
  const CURLcode code = curl_easy_perform(curl);
  HttpAnswer& answer = transfer.answer;
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &answer.status);
  curl_off_t length = -1;
  curl_easy_getinfo(curl, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
  answer.content_length = length;
  impl_->give_back(curl);
  curl_slist_free_all(headers);
  if (code == CURLE_OK || answer.is_longer) return std::move(answer);
  if (!transfer.refused.empty()) return Status(Code::kRefused, transfer.refused);
  return failure_of(code, detail, impl_->stall_s);
}

}  // namespace lockstep::source
