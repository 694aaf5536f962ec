#include "comm/http/http_client.h"

#include <curl/curl.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <mutex>
#include <utility>

#include "comm/base/file.h"
#include "comm/base/limits.h"
#include "comm/http/http_transfer.h"

namespace lockstep::http {
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

using Lines = std::unique_ptr<curl_slist, decltype(&curl_slist_free_all)>;

bool has_body(Method method) {
  return method == Method::kPost || method == Method::kPut;
}

Lines lines_of(const std::vector<std::string>& texts) {
  Lines lines(nullptr, curl_slist_free_all);
  for (const std::string& text : texts)
    lines.reset(curl_slist_append(lines.release(), text.c_str()));
  return lines;
}

// Ends with its own deadline if it has one, else when the server stalls.
std::string late_by(const HttpRequest& request, uint32_t stall_s) {
  if (request.timeout_ms > 0)
    return "the server did not answer within " + std::to_string(request.timeout_ms) + " ms";
  return "the server stalled: less than 1 KiB/s for " + std::to_string(stall_s) +
         " s, or no connection";
}

std::string cannot_connect(const HttpTransfer& transfer, const std::string& text) {
  long error = 0;
  curl_easy_getinfo(transfer.curl, CURLINFO_OS_ERRNO, &error);
  const bool says_more = transfer.request->address.empty() || error == 0;
  return says_more ? text : "cannot connect: " + errno_text(static_cast<int>(error));
}

Status failure_of(CURLcode code, const char* detail, const HttpTransfer& transfer,
                  uint32_t stall_s) {
  const HttpRequest& request = *transfer.request;
  const std::string text = *detail != '\0' ? detail : curl_easy_strerror(code);
  switch (code) {
    case CURLE_OPERATION_TIMEDOUT:
      return {Code::kTimeout, late_by(request, stall_s)};
    case CURLE_COULDNT_CONNECT:
      return {Code::kUnavailable, cannot_connect(transfer, text)};
    case CURLE_GOT_NOTHING:
    case CURLE_PARTIAL_FILE:
      return {Code::kUnavailable, "the connection was closed before the whole answer came"};
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
      if (request.tls != nullptr)
        return {Code::kRefused, "its certificate is not valid: " + text, Obstacle::kCertificate};
      return {
          Code::kRefused,
          "the server's certificate is not trusted: " + text +
              "; if a private authority signed it, name that authority's file in SSL_CERT_FILE"};
    case CURLE_SSL_CONNECT_ERROR:
      if (request.tls == nullptr) break;
      return {Code::kRefused, "TLS failed (" + text + ")", Obstacle::kCertificate};
    case CURLE_TOO_MANY_REDIRECTS:
      return {Code::kRefused,
              "the server redirects to an address that Lockstep does not follow: " + text};
    case CURLE_UNSUPPORTED_PROTOCOL:
      if (transfer.has_header)  // of an answer that redirects to another protocol
        return {Code::kRefused,
                "the server redirects to an address that Lockstep does not follow: " + text};
      return {Code::kRefused, "the program at that address does not speak HTTP"};
    case CURLE_WEIRD_SERVER_REPLY:
      return {Code::kRefused, "the program at that address does not speak HTTP: " + text};
    case CURLE_ABORTED_BY_CALLBACK:
      return {Code::kAborted, "the request was cancelled"};
    default:
      break;
  }
  return {Code::kUnavailable, text};
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

  void set_bounds(CURL* curl, const HttpRequest& request) const {
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    if (stall_s > 0) curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, static_cast<long>(stall_s));
    if (request.timeout_ms > 0) {
      curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, static_cast<long>(request.timeout_ms));
    } else {
      curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, kSlowBytesPerS);
      curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, static_cast<long>(stall_s));
    }
    const bool is_https = request.url.starts_with("https://");
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS_STR, is_https ? "https" : "http,https");
    curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, request.follows_redirects ? 1L : 0L);
    curl_easy_setopt(curl, CURLOPT_MAXREDIRS, limits::kHttpRedirects);
    curl_easy_setopt(curl, CURLOPT_SSL_VERIFYPEER, 1L);
    curl_easy_setopt(curl, CURLOPT_SSL_VERIFYHOST, 2L);
    if (request.tls != nullptr) {
      // Its own authorities alone, and no connection that others have proven.
      curl_easy_setopt(curl, CURLOPT_CAINFO, nullptr);
      curl_easy_setopt(curl, CURLOPT_CAPATH, nullptr);
      curl_easy_setopt(curl, CURLOPT_FRESH_CONNECT, 1L);
      curl_easy_setopt(curl, CURLOPT_FORBID_REUSE, 1L);
    } else if (const char* file = certificates()) {
      curl_easy_setopt(curl, CURLOPT_CAINFO, file);
    }
  }

  static void set_request(CURL* curl, const HttpRequest& request) {
    curl_easy_setopt(curl, CURLOPT_URL, request.url.c_str());
    curl_easy_setopt(curl, CURLOPT_PATH_AS_IS, 1L);
    curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
    curl_easy_setopt(curl, CURLOPT_USERAGENT, "lockstep");
    if (!request.address.empty()) curl_easy_setopt(curl, CURLOPT_PROXY, "");
    if (request.method == Method::kHead) curl_easy_setopt(curl, CURLOPT_NOBODY, 1L);
    if (has_body(request.method)) {
      // From memory, so that libcurl can send it again over another connection.
      curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE,
                       static_cast<curl_off_t>(request.body.size()));
      curl_easy_setopt(curl, CURLOPT_POSTFIELDS, request.body.empty() ? "" : request.body.data());
    }
    if (request.method == Method::kPut || request.method == Method::kDelete)
      curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, name_of(request.method));
    if (!request.range.empty()) curl_easy_setopt(curl, CURLOPT_RANGE, request.range.c_str());
  }

  Result<HttpAnswer> send(CURL* curl, const HttpRequest& request) const {
    HttpTransfer transfer{.request = &request, .stop = &stop, .curl = curl};
    char detail[CURL_ERROR_SIZE] = "";
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, detail);
    set_bounds(curl, request);
    set_request(curl, request);
    LOCKSTEP_RETURN_IF_ERROR(watch(transfer));
    std::vector<std::string> lines = request.headers;
    // Else libcurl asks first whether it may send a large body.
    if (has_body(request.method)) lines.emplace_back("Expect:");
    const Lines headers = lines_of(lines);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers.get());
    std::vector<std::string> places;
    if (!request.address.empty())
      places.push_back("::" + request.address);  // for any host and port
    const Lines connect_to = lines_of(places);
    curl_easy_setopt(curl, CURLOPT_CONNECT_TO, connect_to.get());
    CURLcode code = curl_easy_perform(curl);
    HttpAnswer& answer = transfer.answer;
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &answer.status);
    curl_off_t length = -1;
    curl_easy_getinfo(curl, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
    answer.content_length = length;
    if (!transfer.broken_off.is_ok()) return transfer.broken_off;
    if (code == CURLE_OK && !transfer.has_header) code = CURLE_PARTIAL_FILE;
    if (code == CURLE_OK || answer.is_longer) return std::move(answer);
    return failure_of(code, detail, transfer, stall_s);
  }
};

const char* name_of(Method method) {
  switch (method) {
    case Method::kGet:
      return "GET";
    case Method::kHead:
      return "HEAD";
    case Method::kPost:
      return "POST";
    case Method::kPut:
      return "PUT";
    case Method::kDelete:
      return "DELETE";
  }
  return "GET";
}

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
  Result<HttpAnswer> answer = impl_->send(curl, request);
  impl_->give_back(curl);
  return answer;
}

}  // namespace lockstep::http
