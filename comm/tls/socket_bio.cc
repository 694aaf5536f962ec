#include "comm/tls/socket_bio.h"

#include <openssl/bio.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdint>

namespace lockstep::rpc {
namespace {

// OpenSSL's own sockets write without MSG_NOSIGNAL, so a peer that hangs up would end the process.
// The BIO's data is the descriptor, and its flags remember the end of the stream.
constexpr int kAtEnd = 0x1000000;

int fd_of(BIO* bio) {
  return static_cast<int>(reinterpret_cast<intptr_t>(BIO_get_data(bio)));
}

int note(BIO* bio, ssize_t n) {
  BIO_clear_retry_flags(bio);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return -1;
  return static_cast<int>(n);
}

int write_socket(BIO* bio, const char* from, int bytes) {
  const ssize_t n = ::send(fd_of(bio), from, static_cast<size_t>(bytes), MSG_NOSIGNAL);
  const bool later = n < 0 && (errno == EAGAIN || errno == EINTR);
  const int code = note(bio, n);
  if (later) BIO_set_retry_write(bio);
  return code;
}

int read_socket(BIO* bio, char* out, int bytes) {
  const ssize_t n = ::recv(fd_of(bio), out, static_cast<size_t>(bytes), 0);
  const bool later = n < 0 && (errno == EAGAIN || errno == EINTR);
  const int code = note(bio, n);
  if (later) BIO_set_retry_read(bio);
  if (n == 0) BIO_set_flags(bio, kAtEnd);
  return code;
}

long control_socket(BIO* bio, int command, long, void*) {
  if (command == BIO_CTRL_EOF) return BIO_test_flags(bio, kAtEnd) != 0 ? 1 : 0;
  return command == BIO_CTRL_FLUSH ? 1 : 0;
}

}  // namespace

bio_method_st* make_socket_method() {
  BIO_METHOD* method = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "socket");
  if (method == nullptr) return nullptr;
  BIO_meth_set_write(method, write_socket);
  BIO_meth_set_read(method, read_socket);
  BIO_meth_set_ctrl(method, control_socket);
  return method;
}

}  // namespace lockstep::rpc
