#include "comm/tls/tls_context.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <ctime>

#include "comm/base/check.h"
#include "comm/base/file.h"
#include "comm/base/limits.h"
#include "comm/tls/private_file.h"
#include "comm/tls/socket_bio.h"

namespace lockstep::rpc {
namespace {

struct Freed {
  void operator()(X509* p) const { X509_free(p); }
  void operator()(EVP_PKEY* p) const { EVP_PKEY_free(p); }
  void operator()(BIO* p) const { BIO_free(p); }
  void operator()(X509_STORE_CTX* p) const { X509_STORE_CTX_free(p); }
};
template <typename T>
using Owned = std::unique_ptr<T, Freed>;

constexpr char kMend[] =
    "; make files that belong together with `lockstep certs`, or ask whoever issues your "
    "certificates";

constexpr char kMendOfOthers[] = "; ask whoever has put that file there";

Status unusable(const std::string& path, const std::string& why, const char* mend = kMend) {
  ERR_clear_error();
  return Status(Code::kConfig, path + " " + why + mend);
}

Owned<BIO> memory(const std::string& bytes) {
  return Owned<BIO>(BIO_new_mem_buf(bytes.data(), static_cast<int>(bytes.size())));
}

// A key with a password would make OpenSSL ask for it at the terminal.
int no_password(char*, int, int, void*) {
  return -1;
}

// The whole content of a PEM file, in its order.
Result<std::vector<Owned<X509>>> read_certificates(const std::string& path,
                                                   const char* mend = kMend) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string text, read_file(path, limits::kCertificateBytes));
  const Owned<BIO> bio = memory(text);
  std::vector<Owned<X509>> found;
  while (X509* one = PEM_read_bio_X509(bio.get(), nullptr, no_password, nullptr))
    found.emplace_back(one);
  const bool is_at_end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  ERR_clear_error();
  if (found.empty() || !is_at_end) return unusable(path, "holds no certificate in PEM", mend);
  return found;
}

int64_t end_of(const X509* certificate) {
  std::tm end{};
  if (ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &end) != 1) return 0;
  return ::timegm(&end);
}

}  // namespace

TlsContext::TlsContext()
    : context_(SSL_CTX_new(TLS_method())), socket_method_(make_socket_method()) {
  LOCKSTEP_CHECK(context_ != nullptr && socket_method_ != nullptr, "OpenSSL gives no context");
  SSL_CTX_set_min_proto_version(context_, TLS1_3_VERSION);
  SSL_CTX_set_max_proto_version(context_, TLS1_3_VERSION);
  SSL_CTX_set_num_tickets(context_, 0);
  SSL_CTX_set_session_cache_mode(context_, SSL_SESS_CACHE_OFF);
  // A peer that leaves without a word has ended its connection. Frames know their length.
  SSL_CTX_set_options(context_, SSL_OP_IGNORE_UNEXPECTED_EOF);
  // An idle connection holds no buffers.
  SSL_CTX_set_mode(context_, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                 SSL_MODE_RELEASE_BUFFERS);
}

TlsContext::~TlsContext() {
  SSL_CTX_free(context_);
  BIO_meth_free(socket_method_);
}

std::vector<std::string> TlsContext::paths(const std::string& directory) {
  return {directory + "/ca.crt", directory + "/tls.crt", directory + "/tls.key"};
}

Result<std::shared_ptr<const TlsContext>> TlsContext::load(const std::string& directory) {
  const std::shared_ptr<TlsContext> loaded(new TlsContext());
  const Status status = loaded->read(directory);
  if (!status.is_ok()) return status.with_context("comm.tls");
  return std::shared_ptr<const TlsContext>(loaded);
}

Result<std::shared_ptr<const TlsContext>> TlsContext::load_authority(const std::string& path) {
  const std::shared_ptr<TlsContext> loaded(new TlsContext());
  LOCKSTEP_RETURN_IF_ERROR(loaded->use_authority(path, kMendOfOthers));
  return std::shared_ptr<const TlsContext>(loaded);
}

Status TlsContext::read(const std::string& directory) {
  LOCKSTEP_RETURN_IF_ERROR(use_authority(directory + "/ca.crt", kMend));
  LOCKSTEP_RETURN_IF_ERROR(use_own(directory));
  return check_chain(directory);
}

Status TlsContext::use_authority(const std::string& path, const char* mend) {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto authorities, read_certificates(path, mend));
  for (const Owned<X509>& one : authorities)
    X509_STORE_add_cert(SSL_CTX_get_cert_store(context_), one.get());
  return Status::ok();
}

Status TlsContext::use_own(const std::string& directory) {
  const std::string path = directory + "/tls.crt";
  LOCKSTEP_ASSIGN_OR_RETURN(const auto own, read_certificates(path));
  if (SSL_CTX_use_certificate(context_, own[0].get()) != 1)
    return unusable(path, "holds a certificate that cannot be used");
  for (size_t i = 1; i < own.size(); ++i) SSL_CTX_add1_chain_cert(context_, own[i].get());
  const std::string key_path = directory + "/tls.key";
  LOCKSTEP_ASSIGN_OR_RETURN(
      std::string text,
      read_private_file(key_path, "private key", limits::kCertificateBytes, Links::kFollowed));
  const Owned<EVP_PKEY> key(
      PEM_read_bio_PrivateKey(memory(text).get(), nullptr, no_password, nullptr));
  OPENSSL_cleanse(text.data(), text.size());
  if (key == nullptr) return unusable(key_path, "holds no private key in PEM without a password");
  if (SSL_CTX_use_PrivateKey(context_, key.get()) != 1 || SSL_CTX_check_private_key(context_) != 1)
    return unusable(key_path, "is not the key of " + path);
  return Status::ok();
}

// Finds here, where somebody can mend it, the error that every peer would find.
Status TlsContext::check_chain(const std::string& directory) {
  const std::string path = directory + "/tls.crt";
  const Owned<X509_STORE_CTX> check(X509_STORE_CTX_new());
  STACK_OF(X509)* between = nullptr;
  SSL_CTX_get0_chain_certs(context_, &between);
  X509_STORE_CTX_init(check.get(), SSL_CTX_get_cert_store(context_),
                      SSL_CTX_get0_certificate(context_), between);
  if (X509_verify_cert(check.get()) != 1) {
    const char* why = X509_verify_cert_error_string(X509_STORE_CTX_get_error(check.get()));
    return unusable(path, "does not verify against " + directory + "/ca.crt: " + why);
  }
  const STACK_OF(X509)* chain = X509_STORE_CTX_get0_chain(check.get());
  expires_s_ = end_of(SSL_CTX_get0_certificate(context_));
  for (int i = 0; i < sk_X509_num(chain); ++i)
    expires_s_ = std::min(expires_s_, end_of(sk_X509_value(chain, i)));
  return Status::ok();
}

bool TlsContext::is_for(const std::string& host) const {
  X509* own = SSL_CTX_get0_certificate(context_);
  return X509_check_ip_asc(own, host.c_str(), 0) == 1 ||
         X509_check_host(own, host.data(), host.size(), 0, nullptr) == 1;
}

}  // namespace lockstep::rpc
