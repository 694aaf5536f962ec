#include "comm/rpc/auth.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <span>

#include "comm/base/check.h"
#include "comm/base/file.h"
#include "comm/base/hash.h"
#include "comm/base/limits.h"
#include "comm/wire/control.pb.h"

namespace lockstep::rpc {
namespace {

constexpr size_t kNonceBytes = 32;
constexpr size_t kTokenHexDigits = 64;

std::string proof(const std::string& token, std::string_view label, const std::string& first,
                  const std::string& second) {
  const Digest256 digest = hmac_sha256(token, std::string(label) + first + second);
  return std::string(digest.begin(), digest.end());
}

std::string client_proof(const std::string& token, const std::string& server_nonce,
                         const std::string& client_nonce) {
  return proof(token, "lockstep client", server_nonce, client_nonce);
}

std::string server_proof(const std::string& token, const std::string& server_nonce,
                         const std::string& client_nonce) {
  return proof(token, "lockstep server", client_nonce, server_nonce);
}

Status version_differs(uint32_t theirs) {
  return Status(Code::kRefused, "the peer speaks protocol version " + std::to_string(theirs) +
                                    ", this program version " + std::to_string(wire::kWireVersion));
}

Status check_nonce(const std::string& nonce) {
  if (nonce.size() == kNonceBytes) return Status::ok();
  return Status(Code::kRefused, "the peer's nonce has " + std::to_string(nonce.size()) +
                                    " bytes instead of " + std::to_string(kNonceBytes));
}

// Owner and mode are checked on the open file, so that it cannot be exchanged in between.
Status check_private(int fd, const std::string& path) {
  struct stat info;
  if (::fstat(fd, &info) != 0)
    return Status(Code::kInternal, "cannot stat " + path + ": " + errno_text(errno));
  if (!S_ISREG(info.st_mode)) return Status(Code::kConfig, path + " is not a regular file");
  if (info.st_uid != ::geteuid())
    return Status(Code::kConfig, "the token file " + path + " belongs to another user (uid " +
                                     std::to_string(info.st_uid) +
                                     "): run as the user who started the run");
  if ((info.st_mode & 0177) != 0)
    return Status(Code::kConfig, "the token file " + path +
                                     " can be read by others or is executable: chmod 600 it, and "
                                     "start the run anew if someone may have read it");
  return Status::ok();
}

}  // namespace

Result<std::string> create_token_file(const std::string& path) {
  const std::string bytes = random_bytes(kTokenHexDigits / 2);
  const std::string token = to_hex({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
  LOCKSTEP_RETURN_IF_ERROR(replace_file(path, token + "\n", 0600));
  return token;
}

Result<std::string> read_token_file(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) {
    const Code code = errno == ENOENT ? Code::kNoInput : Code::kConfig;
    return Status(code, "cannot open the token file " + path + ": " + errno_text(errno));
  }
  char content[limits::kTokenFileBytes];
  Status status = check_private(fd, path);
  const ssize_t bytes = status.is_ok() ? ::read(fd, content, sizeof content) : 0;
  if (bytes < 0) status = Status(Code::kInternal, "cannot read " + path + ": " + errno_text(errno));
  ::close(fd);
  LOCKSTEP_RETURN_IF_ERROR(status);

  std::string token(content, static_cast<size_t>(bytes));
  if (!token.empty() && token.back() == '\n') token.pop_back();
  const bool is_hex = std::all_of(token.begin(), token.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
  });
  if (token.size() != kTokenHexDigits || !is_hex)
    return Status(Code::kConfig,
                  path + " does not hold a token (64 hex digits): start the run anew");
  return token;
}

ServerHandshake::ServerHandshake(std::string token)
    : ServerHandshake(std::move(token), random_bytes(kNonceBytes)) {}

ServerHandshake::ServerHandshake(std::string token, std::string nonce)
    : token_(std::move(token)), nonce_(std::move(nonce)) {
  LOCKSTEP_CHECK(nonce_.size() == kNonceBytes, "a nonce has 32 bytes");
}

wire::Frame ServerHandshake::challenge() const {
  wire::AuthChallenge message;
  message.set_version(wire::kWireVersion);
  message.set_nonce(nonce_);
  return make_frame(wire::FrameKind::kAuthChallenge, message);
}

Result<wire::Frame> ServerHandshake::on_response(const wire::Frame& frame) {
  wire::AuthResponse response;
  LOCKSTEP_RETURN_IF_ERROR(parse_frame(frame, wire::FrameKind::kAuthResponse, &response));
  if (response.version() != wire::kWireVersion) return version_differs(response.version());
  LOCKSTEP_RETURN_IF_ERROR(check_nonce(response.nonce()));
  if (!equal_constant_time(response.proof(), client_proof(token_, nonce_, response.nonce())))
    return Status(Code::kRefused, "the token is wrong");
  wire::AuthAccept accept;
  accept.set_proof(server_proof(token_, nonce_, response.nonce()));
  return make_frame(wire::FrameKind::kAuthAccept, accept);
}

wire::Frame ServerHandshake::refusal(const Status& why) {
  wire::AuthRefuse message;
  message.set_reason(why.message());
  return make_frame(wire::FrameKind::kAuthRefuse, message);
}

ClientHandshake::ClientHandshake(std::string token)
    : ClientHandshake(std::move(token), random_bytes(kNonceBytes)) {}

ClientHandshake::ClientHandshake(std::string token, std::string nonce)
    : token_(std::move(token)), nonce_(std::move(nonce)) {
  LOCKSTEP_CHECK(nonce_.size() == kNonceBytes, "a nonce has 32 bytes");
}

Result<ClientHandshake::Progress> ClientHandshake::on_frame(const wire::Frame& frame) {
  if (frame.kind == wire::FrameKind::kAuthRefuse) {
    wire::AuthRefuse refuse;
    LOCKSTEP_RETURN_IF_ERROR(parse_frame(frame, wire::FrameKind::kAuthRefuse, &refuse));
    return Status(Code::kRefused, "the server refused us: " + refuse.reason());
  }
  return server_nonce_.empty() ? on_challenge(frame) : on_accept(frame);
}

Result<ClientHandshake::Progress> ClientHandshake::on_challenge(const wire::Frame& frame) {
  wire::AuthChallenge challenge;
  LOCKSTEP_RETURN_IF_ERROR(parse_frame(frame, wire::FrameKind::kAuthChallenge, &challenge));
  if (challenge.version() != wire::kWireVersion) return version_differs(challenge.version());
  LOCKSTEP_RETURN_IF_ERROR(check_nonce(challenge.nonce()));
  server_nonce_ = challenge.nonce();
  wire::AuthResponse response;
  response.set_version(wire::kWireVersion);
  response.set_nonce(nonce_);
  response.set_proof(client_proof(token_, server_nonce_, nonce_));
  Progress progress;
  progress.has_reply = true;
  progress.reply = make_frame(wire::FrameKind::kAuthResponse, response);
  return progress;
}

Result<ClientHandshake::Progress> ClientHandshake::on_accept(const wire::Frame& frame) {
  wire::AuthAccept accept;
  LOCKSTEP_RETURN_IF_ERROR(parse_frame(frame, wire::FrameKind::kAuthAccept, &accept));
  if (!equal_constant_time(accept.proof(), server_proof(token_, server_nonce_, nonce_)))
    return Status(Code::kRefused,
                  "the server does not know the token: something else listens at "
                  "this address, or the run directory is of another run");
  Progress progress;
  progress.done = true;
  return progress;
}

}  // namespace lockstep::rpc
