#include "data/pack/shard_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <string_view>
#include <utility>
#include <vector>

#include "comm/base/descriptors.h"
#include "comm/base/file.h"
#include "data/arrow/codec.h"
#include "data/arrow/writer.h"
#include "data/files/mapped_file.h"

namespace lockstep::data {
namespace {

class Writer {
 public:
  Writer(const std::string& path, ArrowCodec codec)
      : path_(path),
        temporary_(path + ".tmp"),
        codec_(codec),
        fd_(::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)),
        error_(errno) {}

  Status begin(ArrowSchema schema) {
    if (fd_.get() < 0) return failed(error_);
    schema_ = std::move(schema);
    LOCKSTEP_RETURN_IF_ERROR(append(arrow_file_head()));
    return append(schema_message(schema_, bytes_));
  }

  Status add(const PackBatch& from) {
    ArrowBatch batch;
    batch.rows = from.rows;
    batch.codec = codec_;
    batch.nodes = from.nodes;
    std::vector<std::string> packed;
    for (const std::string& buffer : from.buffers) {
      if (codec_ != ArrowCodec::kNone)
        append_packed(codec_, as_bytes(buffer), packed.emplace_back());
      batch.buffers.push_back(
          {0, codec_ == ArrowCodec::kNone ? buffer.size() : packed.back().size()});
    }
    const uint64_t body_bytes = lay_out(batch);
    const std::string message = batch_message(batch, body_bytes, bytes_);
    blocks_.push_back({bytes_, message.size(), body_bytes});
    LOCKSTEP_RETURN_IF_ERROR(append(message));
    for (const std::string& buffer : codec_ == ArrowCodec::kNone ? from.buffers : packed) {
      LOCKSTEP_RETURN_IF_ERROR(append(buffer));
      LOCKSTEP_RETURN_IF_ERROR(
          append(std::string(arrow_aligned(buffer.size()) - buffer.size(), '\0')));
    }
    return Status::ok();
  }

  Result<uint64_t> end() {
    LOCKSTEP_RETURN_IF_ERROR(append(arrow_file_end(schema_, blocks_)));
    if (::fsync(fd_.get()) != 0) return failed(errno);
    if (::rename(temporary_.c_str(), path_.c_str()) != 0) return failed(errno);
    LOCKSTEP_RETURN_IF_ERROR(sync_directory(std::filesystem::path(path_).parent_path().string()));
    return bytes_;
  }

  // Removes the incomplete file.
  Status give_up(const Status& why) {
    if (fd_.get() >= 0) ::unlink(temporary_.c_str());
    return why;
  }

 private:
  Status failed(int error) const {
    return {Code::kInternal, "cannot write " + temporary_ + ": " + errno_text(error) +
                                 "; fix this and run the same command again, which continues"};
  }

  Status append(std::string_view bytes) {
    bytes_ += bytes.size();
    return write_all(fd_.get(), bytes) ? Status::ok() : failed(errno);
  }

  std::string path_;
  std::string temporary_;
  ArrowCodec codec_;
  Descriptor fd_;
  int error_;
  uint64_t bytes_ = 0;
  ArrowSchema schema_;
  std::vector<ArrowBlock> blocks_;
};

Result<uint64_t> write_whole(const PackSource& source, const PackShard& shard, Writer& writer,
                             std::atomic<uint64_t>& done) {
  LOCKSTEP_RETURN_IF_ERROR(writer.begin(source.schema(shard)));
  LOCKSTEP_RETURN_IF_ERROR(source.read(shard, [&](const PackBatch& batch) {
    Status status = writer.add(batch);
    done += shard.bytes * batch.units / (shard.end - shard.begin);
    return status;
  }));
  return writer.end();
}

}  // namespace

Result<uint64_t> write_shard(const PackSource& source, const PackShard& shard, ArrowCodec codec,
                             const std::string& path, std::atomic<uint64_t>& done) {
  Writer writer(path, codec);
  auto bytes = write_whole(source, shard, writer, done);
  return bytes.is_ok() ? bytes : writer.give_up(bytes.status());
}

bool has_shard(const PackShard& shard, const std::string& path) {
  const auto file = MappedFile::open(path);
  if (!file.is_ok()) return false;
  const auto layout = parse_arrow(file->bytes());
  if (!layout.is_ok()) return false;
  uint64_t rows = 0;
  for (const ArrowBatch& batch : layout->batches) rows += batch.rows;
  return rows == shard.rows;
}

}  // namespace lockstep::data
