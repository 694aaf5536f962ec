#include "deploy/cli/base/certificates.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <filesystem>
#include <memory>

#include "comm/base/file.h"
#include "comm/base/limits.h"
#include "comm/tls/private_file.h"

namespace lockstep {
namespace {

constexpr int64_t kDaySeconds = int64_t{24} * 3600;
constexpr int64_t kAuthoritySeconds = int64_t{3650} * kDaySeconds;
constexpr int64_t kClocksDifferSeconds = 300;  // valid since then: not all clocks go alike
constexpr int kSerialBytes = 16;

struct Freed {
  void operator()(X509* p) const { X509_free(p); }
  void operator()(EVP_PKEY* p) const { EVP_PKEY_free(p); }
  void operator()(BIO* p) const { BIO_free(p); }
  void operator()(X509_EXTENSION* p) const { X509_EXTENSION_free(p); }
  void operator()(GENERAL_NAMES* p) const { GENERAL_NAMES_free(p); }
};
template <typename T>
using Owned = std::unique_ptr<T, Freed>;

struct Authority {
  Owned<X509> certificate;
  Owned<EVP_PKEY> key;
  bool is_new = false;
};

Status failed(const std::string& what) {
  const char* why = ERR_reason_error_string(ERR_peek_last_error());
  ERR_clear_error();
  return Status(Code::kInternal, what + (why == nullptr ? "" : std::string(": ") + why));
}

bool is_address(const std::string& host) {
  in6_addr ignored;  // has room for either
  return ::inet_pton(AF_INET, host.c_str(), &ignored) == 1 ||
         ::inet_pton(AF_INET6, host.c_str(), &ignored) == 1;
}

Status check_host(const std::string& host) {
  const auto is_name_char = [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '.' || c == '-' || c == '_';
  };
  const std::string name = host.starts_with("*.") ? host.substr(2) : host;
  if (is_address(host)) return Status::ok();
  if (!name.empty() && name.size() <= 253 && std::all_of(name.begin(), name.end(), is_name_char))
    return Status::ok();
  return Status(Code::kUsage, "\"" + host +
                                  "\" is not a host: write names or addresses, as in --hosts "
                                  "node1,node2.example.org,10.0.0.1");
}

std::string pem(const X509* certificate) {
  const Owned<BIO> bio(BIO_new(BIO_s_mem()));
  PEM_write_bio_X509(bio.get(), certificate);
  char* bytes = nullptr;
  const long count = BIO_get_mem_data(bio.get(), &bytes);
  return {bytes, static_cast<size_t>(count)};
}

std::string pem(const EVP_PKEY* key) {
  const Owned<BIO> bio(BIO_new(BIO_s_mem()));
  PEM_write_bio_PrivateKey(bio.get(), key, nullptr, nullptr, 0, nullptr, nullptr);
  char* bytes = nullptr;
  const long count = BIO_get_mem_data(bio.get(), &bytes);
  return {bytes, static_cast<size_t>(count)};
}

bool add_extension(X509* certificate, const X509* issuer, int nid, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, const_cast<X509*>(issuer), certificate, nullptr, nullptr, 0);
  const Owned<X509_EXTENSION> extension(X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str()));
  return extension != nullptr && X509_add_ext(certificate, extension.get(), -1) == 1;
}

// Without issuer, key's own name and signature.
Owned<X509> make_certificate(EVP_PKEY* key, const std::string& name, int64_t valid_seconds) {
  Owned<X509> made(X509_new());
  unsigned char serial[kSerialBytes];
  if (made == nullptr || RAND_bytes(serial, sizeof serial) != 1) return nullptr;
  serial[0] &= 0x7f;  // a positive number
  BIGNUM* number = BN_bin2bn(serial, sizeof serial, nullptr);
  BN_to_ASN1_INTEGER(number, X509_get_serialNumber(made.get()));
  BN_free(number);
  X509_set_version(made.get(), X509_VERSION_3);
  X509_gmtime_adj(X509_getm_notBefore(made.get()), -kClocksDifferSeconds);
  X509_time_adj_ex(X509_getm_notAfter(made.get()), static_cast<int>(valid_seconds / kDaySeconds),
                   valid_seconds % kDaySeconds, nullptr);
  X509_set_pubkey(made.get(), key);
  X509_NAME_add_entry_by_txt(X509_get_subject_name(made.get()), "CN", MBSTRING_UTF8,
                             reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
  return made;
}

Result<Authority> make_authority(const std::string& directory) {
  Authority authority;
  authority.is_new = true;
  authority.key.reset(EVP_EC_gen("P-256"));
  if (authority.key == nullptr) return failed("cannot make a key");
  authority.certificate =
      make_certificate(authority.key.get(), "Lockstep run authority", kAuthoritySeconds);
  X509* own = authority.certificate.get();
  if (own == nullptr || X509_set_issuer_name(own, X509_get_subject_name(own)) != 1 ||
      !add_extension(own, own, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") ||
      !add_extension(own, own, NID_key_usage, "critical,keyCertSign,cRLSign") ||
      !add_extension(own, own, NID_subject_key_identifier, "hash") ||
      X509_sign(own, authority.key.get(), EVP_sha256()) == 0)
    return failed("cannot make an authority");
  LOCKSTEP_RETURN_IF_ERROR(replace_file(directory + "/ca.key", pem(authority.key.get()), 0600));
  LOCKSTEP_RETURN_IF_ERROR(replace_file(directory + "/ca.crt", pem(own)));
  return authority;
}

Owned<X509> parse_certificate(const std::string& text) {
  const Owned<BIO> bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
  return Owned<X509>(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
}

Result<Authority> read_authority(const std::string& directory) {
  const std::string key_path = directory + "/ca.key";
  const auto anew = [&](const std::string& why) {
    ERR_clear_error();
    return Status(
        Code::kConfig,
        directory + "/ca.crt " + why +
            ": name another directory, or remove ca.crt and ca.key there for a new authority");
  };
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string text,
                            read_file(directory + "/ca.crt", limits::kCertificateBytes));
  auto key_text = rpc::read_private_file(key_path, "private key", limits::kCertificateBytes,
                                         rpc::Links::kRefused);
  if (key_text.status().code() == Code::kNoInput)
    return anew("has no key (ca.key) beside it, so Lockstep cannot sign certificates with it");
  LOCKSTEP_RETURN_IF_ERROR(key_text.status());
  Authority authority;
  authority.certificate = parse_certificate(text);
  const Owned<BIO> bio(BIO_new_mem_buf(key_text->data(), static_cast<int>(key_text->size())));
  authority.key.reset(PEM_read_bio_PrivateKey(
      bio.get(), nullptr, [](char*, int, int, void*) { return -1; }, nullptr));
  if (authority.certificate == nullptr || authority.key == nullptr ||
      X509_check_private_key(authority.certificate.get(), authority.key.get()) != 1)
    return anew("and ca.key do not belong together");
  if (X509_cmp_current_time(X509_get0_notAfter(authority.certificate.get())) < 0)
    return anew("has expired");
  return authority;
}

// The hosts of the certificate that is there; empty if there is none.
std::vector<std::string> hosts_before(const std::string& directory) {
  std::vector<std::string> hosts;
  const auto text = read_file(directory + "/tls.crt", limits::kCertificateBytes);
  const Owned<X509> before = text.is_ok() ? parse_certificate(*text) : nullptr;
  ERR_clear_error();
  if (before == nullptr) return hosts;
  const Owned<GENERAL_NAMES> names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(before.get(), NID_subject_alt_name, nullptr, nullptr)));
  for (int i = 0; i < sk_GENERAL_NAME_num(names.get()); ++i) {
    int type = 0;
    const auto* value = static_cast<const ASN1_STRING*>(
        GENERAL_NAME_get0_value(sk_GENERAL_NAME_value(names.get(), i), &type));
    const unsigned char* bytes = ASN1_STRING_get0_data(value);
    const auto count = static_cast<size_t>(ASN1_STRING_length(value));
    char address[INET6_ADDRSTRLEN] = {};
    if (type == GEN_DNS)
      hosts.emplace_back(reinterpret_cast<const char*>(bytes), count);
    else if (type == GEN_IPADD &&
             ::inet_ntop(count == 4 ? AF_INET : AF_INET6, bytes, address, sizeof address))
      hosts.emplace_back(address);
  }
  return hosts;
}

std::string alternative_names(const std::vector<std::string>& hosts) {
  std::string text;
  for (const std::string& host : hosts)
    text += (text.empty() ? "" : ",") + std::string(is_address(host) ? "IP:" : "DNS:") + host;
  return text;
}

Status sign(X509* certificate, const Authority& authority, const std::vector<std::string>& hosts) {
  const X509* issuer = authority.certificate.get();
  const bool is_signed =
      X509_set_issuer_name(certificate, X509_get_subject_name(issuer)) == 1 &&
      add_extension(certificate, issuer, NID_basic_constraints, "critical,CA:FALSE") &&
      add_extension(certificate, issuer, NID_key_usage, "critical,digitalSignature") &&
      add_extension(certificate, issuer, NID_ext_key_usage, "serverAuth,clientAuth") &&
      add_extension(certificate, issuer, NID_authority_key_identifier, "keyid") &&
      add_extension(certificate, issuer, NID_subject_alt_name, alternative_names(hosts)) &&
      X509_sign(certificate, authority.key.get(), EVP_sha256()) != 0;
  return is_signed ? Status::ok() : failed("cannot sign the certificate");
}

std::string text_of(const ASN1_TIME* time) {
  std::tm utc{};
  char text[32] = {};
  if (ASN1_TIME_to_tm(time, &utc) == 1)
    std::strftime(text, sizeof text, "%Y-%m-%d %H:%M UTC", &utc);
  return text;
}

Status make_directory(const std::string& path) {
  std::error_code error;
  const bool is_new = std::filesystem::create_directories(path, error);
  if (error) return Status(Code::kConfig, "cannot make " + path + ": " + error.message());
  if (is_new) ::chmod(path.c_str(), 0700);
  return Status::ok();
}

}  // namespace

Result<IssuedCertificate> issue_certificate(const CertificateRequest& request) {
  const std::string& directory = request.directory;
  for (const std::string& host : request.hosts) LOCKSTEP_RETURN_IF_ERROR(check_host(host));
  LOCKSTEP_RETURN_IF_ERROR(make_directory(directory));
  std::error_code error;
  LOCKSTEP_ASSIGN_OR_RETURN(const Authority authority,
                            std::filesystem::exists(directory + "/ca.crt", error)
                                ? read_authority(directory)
                                : make_authority(directory));
  IssuedCertificate issued;
  issued.is_new_authority = authority.is_new;
  issued.hosts = {"localhost", "127.0.0.1", "::1"};
  const auto add = [&](const std::string& host) {
    if (std::find(issued.hosts.begin(), issued.hosts.end(), host) == issued.hosts.end())
      issued.hosts.push_back(host);
  };
  if (!authority.is_new)
    for (const std::string& host : hosts_before(directory)) add(host);
  for (const std::string& host : request.hosts) add(host);

  const Owned<EVP_PKEY> key(EVP_EC_gen("P-256"));
  if (key == nullptr) return failed("cannot make a key");
  const Owned<X509> own = make_certificate(key.get(), "Lockstep node", request.valid_seconds);
  if (own == nullptr) return failed("cannot make a certificate");
  const ASN1_TIME* last = X509_get0_notAfter(authority.certificate.get());
  if (ASN1_TIME_compare(X509_get0_notAfter(own.get()), last) > 0)
    X509_set1_notAfter(own.get(), last);
  LOCKSTEP_RETURN_IF_ERROR(sign(own.get(), authority, issued.hosts));
  issued.ends = text_of(X509_get0_notAfter(own.get()));
  LOCKSTEP_RETURN_IF_ERROR(replace_file(directory + "/tls.key", pem(key.get()), 0600));
  LOCKSTEP_RETURN_IF_ERROR(replace_file(directory + "/tls.crt", pem(own.get())));
  return issued;
}

}  // namespace lockstep
