#include "worker/session/record_spill.h"

#include <unistd.h>

#include <cerrno>

#include "comm/base/check.h"
#include "comm/base/crc32c.h"
#include "comm/base/descriptors.h"
#include "comm/base/file.h"
#include "comm/run/directory/folder.h"

namespace lockstep {
namespace {

struct SpillHeader {
  uint64_t bytes = 0;
  uint64_t generation = 0;
  uint64_t crc = 0;  // of the body: records that another process wrote here are none of this run
};

Status failed(const char* what, const std::string& path) {
  return Status(Code::kInternal,
                std::string(what) + " the record spill file " + path + ": " + errno_text(errno));
}

Status write_at(int fd, const std::string& path, uint64_t offset, const char* data, size_t bytes) {
  return write_all_at(fd, {data, bytes}, static_cast<int64_t>(offset))
             ? Status::ok()
             : failed("cannot write", path);
}

Status read_exactly(int fd, const std::string& path, uint64_t offset, char* data, size_t bytes) {
  for (size_t done = 0; done < bytes;) {
    const ssize_t n = ::pread(fd, data + done, bytes - done, static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return failed("cannot read", path);
    if (n == 0) return Status(Code::kInternal, "the record spill file " + path + " was shortened");
    done += static_cast<size_t>(n);
  }
  return Status::ok();
}

}  // namespace

RecordSpill::~RecordSpill() {
  if (fd_ < 0) return;
  ::close(fd_);
  ::unlink(path_.c_str());
}

Status RecordSpill::open() {
  if (fd_ >= 0) return Status::ok();
  rundir::make_folder_of(
      path_);  // nothing else may need it: data in files of their own have no cache
  fd_ = create_own_file(path_, 0600);
  return fd_ >= 0 ? Status::ok() : failed("cannot create", path_);
}

Status RecordSpill::push(Generation generation, const wire::StepRecords& records) {
  LOCKSTEP_RETURN_IF_ERROR(open());
  const std::string body = records.SerializeAsString();
  const SpillHeader header{body.size(), generation, crc32c(body)};
  std::string text(reinterpret_cast<const char*>(&header), sizeof header);
  text += body;
  if (end_ + text.size() > limit_bytes_)
    return Status(Code::kInternal, "the record spill file " + path_ + " has reached its limit of " +
                                       std::to_string(limit_bytes_) + " bytes");
  LOCKSTEP_RETURN_IF_ERROR(write_at(fd_, path_, end_, text.data(), text.size()));
  end_ += text.size();
  ++batches_;
  return Status::ok();
}

Result<uint64_t> RecordSpill::read_at(uint64_t offset, Generation* generation,
                                      wire::StepRecords* records) const {
  SpillHeader header;
  LOCKSTEP_RETURN_IF_ERROR(
      read_exactly(fd_, path_, offset, reinterpret_cast<char*>(&header), sizeof header));
  if (header.bytes > end_ - offset - sizeof header)
    return Status(Code::kInternal, "the record spill file " + path_ + " was overwritten");
  std::string body(header.bytes, '\0');
  LOCKSTEP_RETURN_IF_ERROR(
      read_exactly(fd_, path_, offset + sizeof header, body.data(), body.size()));
  if (crc32c(body) != header.crc || !records->ParseFromString(body))
    return Status(Code::kInternal, "the record spill file " + path_ + " was overwritten");
  *generation = header.generation;
  return offset + sizeof header + header.bytes;
}

Status RecordSpill::pop(Generation* generation, wire::StepRecords* records) {
  LOCKSTEP_CHECK(batches_ > 0, "pop() needs a batch");
  LOCKSTEP_ASSIGN_OR_RETURN(begin_, read_at(begin_, generation, records));
  // Once all is read the space is used again from the front.
  return --batches_ == 0 ? clear() : Status::ok();
}

Status RecordSpill::clear() {
  begin_ = end_ = batches_ = 0;
  if (fd_ >= 0 && ::ftruncate(fd_, 0) != 0) return failed("cannot truncate", path_);
  return Status::ok();
}

Status RecordSpill::for_each(const std::function<bool(const wire::StepRecords&)>& visit) const {
  uint64_t offset = begin_;
  for (uint64_t i = 0; i < batches_; ++i) {
    Generation generation = 0;
    wire::StepRecords records;
    LOCKSTEP_ASSIGN_OR_RETURN(offset, read_at(offset, &generation, &records));
    if (!visit(records)) break;
  }
  return Status::ok();
}

}  // namespace lockstep
