#include "metrics/files/event_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <bit>
#include <cerrno>

#include "comm/base/crc32c.h"
#include "comm/base/file.h"

namespace lockstep {
namespace {

template <typename T>
void put_fixed(T value, std::string* out) {  // little-endian
  for (size_t i = 0; i < sizeof(T); ++i) out->push_back(static_cast<char>(value >> (8 * i)));
}

void put_varint(uint64_t value, std::string* out) {
  for (; value >= 0x80; value >>= 7) out->push_back(static_cast<char>(value | 0x80));
  out->push_back(static_cast<char>(value));
}

// Protobuf's wire types.
enum Wire : uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

void put_key(uint32_t field, Wire wire, std::string* out) {
  put_varint(field << 3 | wire, out);
}

void put_bytes(uint32_t field, std::string_view bytes, std::string* out) {
  put_key(field, kBytes, out);
  put_varint(bytes.size(), out);
  out->append(bytes);
}

}  // namespace

std::string event_file_name(int64_t wall_s, const std::string& host, uint64_t number) {
  return "events.out.tfevents." + std::to_string(wall_s) + "." + host + "." +
         std::to_string(number);
}

Result<std::unique_ptr<EventFile>> EventFile::create(const std::string& path, double wall_s) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (fd < 0) return Status(Code::kInternal, "cannot create " + path + ": " + errno_text(errno));
  std::unique_ptr<EventFile> file(new EventFile(fd, path));
  std::string version;
  put_bytes(3, "brain.Event:2", &version);
  file->add(wall_s, 0, version);
  return file;
}

EventFile::~EventFile() {
  ::close(fd_);
}

void EventFile::start_session(uint64_t step, double wall_s) {
  std::string log;
  put_key(1, kVarint, &log);
  put_varint(1, &log);  // START
  std::string event;
  put_bytes(7, log, &event);
  add(wall_s, step, event);
}

void EventFile::scalar(std::string_view tag, uint64_t step, double wall_s, float value) {
  std::string entry;
  put_bytes(1, tag, &entry);
  put_key(2, kFixed32, &entry);
  put_fixed(std::bit_cast<uint32_t>(value), &entry);
  std::string summary;
  put_bytes(1, entry, &summary);
  std::string event;
  put_bytes(5, summary, &event);
  add(wall_s, step, event);
}

void EventFile::add(double wall_s, uint64_t step, std::string_view rest) {
  std::string event;
  put_key(1, kFixed64, &event);
  put_fixed(std::bit_cast<uint64_t>(wall_s), &event);
  if (step != 0) {
    put_key(2, kVarint, &event);
    put_varint(step, &event);
  }
  event.append(rest);
  std::string length;
  put_fixed(uint64_t{event.size()}, &length);
  pending_ += length;
  put_fixed(masked_crc32c(length), &pending_);
  pending_ += event;
  put_fixed(masked_crc32c(event), &pending_);
}

Status EventFile::flush() {
  size_t written = 0;
  while (written < pending_.size()) {
    const ssize_t got = ::write(fd_, pending_.data() + written, pending_.size() - written);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0)
      return Status(Code::kInternal, "cannot write " + path_ + ": " + errno_text(errno));
    written += static_cast<size_t>(got);
  }
  pending_.clear();
  return Status::ok();
}

}  // namespace lockstep
