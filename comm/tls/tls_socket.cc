#include "comm/tls/tls_socket.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <climits>

#include "comm/base/check.h"
#include "comm/base/file.h"

namespace lockstep::rpc {
namespace {

bool is_number(const std::string& host) {
  ASN1_OCTET_STRING* octets = a2i_IPADDRESS(host.c_str());
  ERR_clear_error();
  const bool is_one = octets != nullptr;
  ASN1_OCTET_STRING_free(octets);
  return is_one;
}

bool is_no_tls(int reason) {
  switch (reason) {
    case SSL_R_WRONG_VERSION_NUMBER:
    case SSL_R_HTTP_REQUEST:
    case SSL_R_HTTPS_PROXY_REQUEST:
    case SSL_R_UNSUPPORTED_PROTOCOL:
    case SSL_R_UNEXPECTED_MESSAGE:
    case SSL_R_BAD_RECORD_TYPE:
    case SSL_R_PACKET_LENGTH_TOO_LONG:
    case SSL_R_RECORD_LENGTH_MISMATCH:
    case SSL_R_VERSION_TOO_LOW:
      return true;
    default:
      return false;
  }
}

}  // namespace

std::string tls_error_text(long verify_result) {
  const unsigned long error = ERR_peek_last_error();
  ERR_clear_error();
  if (verify_result != X509_V_OK)
    return std::string("its certificate is not valid: ") +
           X509_verify_cert_error_string(verify_result);
  const int reason = ERR_GET_REASON(error);
  const char* text = ERR_reason_error_string(error);
  const std::string said = text == nullptr ? "no reason given" : text;
  if (reason == SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE) return "it shows no certificate";
  if (is_no_tls(reason)) return "it does not speak TLS 1.3 (" + said + ")";
  if (reason > SSL_AD_REASON_OFFSET) return "it rejected our TLS handshake (" + said + ")";
  return "TLS failed (" + said + ")";
}

TlsSocket::TlsSocket(std::shared_ptr<const TlsContext> context, int fd)
    : context_(std::move(context)), ssl_(SSL_new(context_->native())) {
  BIO* bio = BIO_new(context_->socket_method());
  LOCKSTEP_CHECK(ssl_ != nullptr && bio != nullptr, "OpenSSL has no memory");
  // The number itself is the data. NOLINTNEXTLINE(performance-no-int-to-ptr)
  BIO_set_data(bio, reinterpret_cast<void*>(static_cast<intptr_t>(fd)));
  BIO_set_init(bio, 1);
  SSL_set_bio(ssl_, bio, bio);
}

std::unique_ptr<TlsSocket> TlsSocket::accept(std::shared_ptr<const TlsContext> context, int fd) {
  std::unique_ptr<TlsSocket> made(new TlsSocket(std::move(context), fd));
  SSL_set_accept_state(made->ssl_);
  SSL_set_verify(made->ssl_, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  return made;
}

std::unique_ptr<TlsSocket> TlsSocket::connect(std::shared_ptr<const TlsContext> context, int fd,
                                              const std::string& host) {
  std::unique_ptr<TlsSocket> made(new TlsSocket(std::move(context), fd));
  SSL_set_connect_state(made->ssl_);
  SSL_set_verify(made->ssl_, SSL_VERIFY_PEER, nullptr);
  bool is_set = false;
  if (is_number(host)) {
    is_set = X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(made->ssl_), host.c_str()) == 1;
  } else {
    SSL_set_hostflags(made->ssl_, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    is_set = SSL_set1_host(made->ssl_, host.c_str()) == 1;
    (void)SSL_set_tlsext_host_name(made->ssl_,
                                   host.c_str());  // helps only servers with several names
  }
  LOCKSTEP_CHECK(is_set, "a host that cannot be checked");
  return made;
}

std::unique_ptr<TlsSocket> TlsSocket::connect_to_any(std::shared_ptr<const TlsContext> context,
                                                     int fd) {
  std::unique_ptr<TlsSocket> made(new TlsSocket(std::move(context), fd));
  SSL_set_connect_state(made->ssl_);
  SSL_set_verify(made->ssl_, SSL_VERIFY_PEER, nullptr);
  // Gigabytes of data pay for every round of the cipher: 10 rounds instead of 14.
  const bool is_set =
      SSL_set_ciphersuites(made->ssl_, "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256") == 1;
  LOCKSTEP_CHECK(is_set, "every OpenSSL has the ciphers of TLS 1.3");
  return made;
}

TlsSocket::~TlsSocket() {
  SSL_free(ssl_);
}

// An error shows again at the next call.
void TlsSocket::begin() {
  ERR_clear_error();
  (void)SSL_do_handshake(ssl_);
  ERR_clear_error();
}

IoResult TlsSocket::read(char* out, size_t bytes) {
  ERR_clear_error();
  const int n = SSL_read(ssl_, out, static_cast<int>(std::min<size_t>(bytes, INT_MAX)));
  return result(n, n > 0 ? static_cast<size_t>(n) : 0);
}

IoResult TlsSocket::write(const char* from, size_t bytes) {
  ERR_clear_error();
  if (written_bytes_ >= key_bytes_) renew_key();
  const int n = SSL_write(ssl_, from, static_cast<int>(std::min<size_t>(bytes, INT_MAX)));
  if (n > 0) written_bytes_ += static_cast<size_t>(n);
  return result(n, n > 0 ? static_cast<size_t>(n) : 0);
}

// OpenSSL refuses while a record is half out. Then we try after the next one.
void TlsSocket::renew_key() {
  if (SSL_key_update(ssl_, SSL_KEY_UPDATE_NOT_REQUESTED) == 1) {
    written_bytes_ = 0;
    ++key_updates_;
  }
  ERR_clear_error();
}

std::string TlsSocket::binding() const {
  constexpr char kLabel[] = "EXPORTER-Channel-Binding";
  std::string bytes(32, '\0');
  const int code = SSL_export_keying_material(ssl_, reinterpret_cast<unsigned char*>(bytes.data()),
                                              bytes.size(), kLabel, sizeof kLabel - 1,
                                              reinterpret_cast<const unsigned char*>(""), 0, 1);
  LOCKSTEP_CHECK(code == 1, "a connection whose handshake is over has keys");
  return bytes;
}

IoResult TlsSocket::result(int code, size_t bytes) {
  if (code > 0) {
    held_.reset();
    return {IoResult::State::kDone, bytes};
  }
  const int error = SSL_get_error(ssl_, code);
  if (error == SSL_ERROR_WANT_READ) return {IoResult::State::kWantsRead};
  if (error == SSL_ERROR_WANT_WRITE) return {IoResult::State::kWantsWrite};
  if (error == SSL_ERROR_ZERO_RETURN) return {IoResult::State::kEnd};
  return {IoResult::State::kBroken, 0, why_broken(error)};
}

Status TlsSocket::why_broken(int error) const {
  if (error == SSL_ERROR_SSL)
    return Status(Code::kRefused, tls_error_text(SSL_get_verify_result(ssl_)),
                  Obstacle::kCertificate);
  if (errno == 0)
    return Status(Code::kUnavailable, "the connection broke: it ended in the middle of TLS",
                  Obstacle::kCertificate);
  return Status(Code::kUnavailable, "the connection broke: " + errno_text(errno));
}

void TlsSocket::say_end() {
  if (SSL_is_init_finished(ssl_) != 1) return;
  ERR_clear_error();
  (void)SSL_shutdown(ssl_);
  ERR_clear_error();
}

}  // namespace lockstep::rpc
