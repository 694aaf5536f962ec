#include "data/files/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <string>
#include <vector>

#include "comm/base/byte_units.h"
#include "comm/base/check.h"
#include "comm/base/limits.h"
#include "data/base/file_errors.h"

namespace lockstep::data {
namespace {

constexpr size_t kMostPerCall = kGib;  // zlib counts in 32 bits

Status wrong_checksum() {
  return bad("is corrupt: its checksum is wrong");
}

}  // namespace

bool is_gzip(std::span<const uint8_t> bytes) {
  return bytes.size() >= 2 && bytes[0] == 0x1f && bytes[1] == 0x8b;
}

Status gzipped_whole() {
  return bad(
      "is compressed as a whole, so Lockstep cannot read single samples from it; unpack it with "
      "gunzip");
}

uint64_t most_inflated(uint64_t compressed_bytes, uint64_t more) {
  // Clamp first: the product would overflow, and such a file exceeds the limit anyway.
  const uint64_t bytes = std::min(compressed_bytes, limits::kDatasetBytes);
  return std::min(bytes * limits::kWholeInflateRatio + more, limits::kDatasetBytes);
}

Status inflates_too_much() {
  return bad("inflates to more than " + std::to_string(limits::kWholeInflateRatio) +
             " times its size, which looks damaged; if it is sound, unpack it yourself");
}

struct GzipReader::Impl {
  const uint64_t bytes;
  std::span<const uint8_t> rest;  // not yet given to zlib
  z_stream stream{};
  const bool is_gzipped;
  const std::string what = is_gzipped ? "its gzip stream" : "its compressed stream";
  bool ended = false;
  Status failure;  // once it failed it stays failed

  Impl(std::span<const uint8_t> compressed, Wrapping wrapping)
      : bytes(compressed.size()), rest(compressed), is_gzipped(wrapping == Wrapping::kGzip) {
    const int window = is_gzipped ? 16 + MAX_WBITS : -MAX_WBITS;  // as inflateInit2 says them
    LOCKSTEP_CHECK(inflateInit2(&stream, window) == Z_OK, "inflateInit2");
  }
  ~Impl() { inflateEnd(&stream); }

  // Gives zlib more input when it has none.
  void feed() {
    if (stream.avail_in > 0 || rest.empty()) return;
    const size_t n = std::min(rest.size(), kMostPerCall);
    stream.next_in = const_cast<Bytef*>(rest.data());  // zlib's interface; it only reads
    stream.avail_in = static_cast<uInt>(n);
    rest = rest.subspan(n);
  }

  // After a verified member: another one, or the end.
  Status next_member() {
    feed();
    if (stream.avail_in == 0) {
      ended = true;
      return Status::ok();
    }
    if (!is_gzipped || stream.next_in[0] != 0x1f) return bad("has bytes after the end of " + what);
    LOCKSTEP_CHECK(inflateReset(&stream) == Z_OK, "inflateReset");
    return Status::ok();
  }

  // One call of zlib; the output pointers are set.
  Status advance() {
    feed();
    const int code = inflate(&stream, Z_NO_FLUSH);
    if (code == Z_STREAM_END) return next_member();
    if (code == Z_OK) return Status::ok();
    if (code == Z_BUF_ERROR) return bad("is truncated: " + what + " ends early");
    LOCKSTEP_CHECK(code != Z_MEM_ERROR, "no memory to inflate");
    return bad("is corrupt: " +
               (stream.msg != nullptr ? std::string(stream.msg) : what + " cannot be inflated"));
  }
};

GzipReader::GzipReader(std::span<const uint8_t> compressed, Wrapping wrapping)
    : impl_(std::make_unique<Impl>(compressed, wrapping)) {}
GzipReader::~GzipReader() = default;

uint64_t GzipReader::compressed_bytes() const {
  return impl_->bytes;
}

Result<size_t> GzipReader::read(std::span<uint8_t> out) {
  z_stream& stream = impl_->stream;
  size_t done = 0;
  while (done < out.size() && !impl_->ended && impl_->failure.is_ok()) {
    const size_t n = std::min(out.size() - done, kMostPerCall);
    stream.next_out = out.data() + done;
    stream.avail_out = static_cast<uInt>(n);
    impl_->failure = impl_->advance();
    done += n - stream.avail_out;
  }
  if (!impl_->failure.is_ok()) return impl_->failure;
  return done;
}

Status pass_on(GzipReader& reader, std::vector<uint8_t>& piece, size_t filled, uint64_t promised,
               const ByteSink& sink) {
  if (promised > most_inflated(reader.compressed_bytes(), limits::kArrayInflateBytes))
    return inflates_too_much();
  for (uint64_t done = filled;;) {
    if (done > promised)
      return bad("inflates to more than the " + std::to_string(promised) +
                 " bytes that its header promises");
    if (filled > 0) LOCKSTEP_RETURN_IF_ERROR(sink(std::span(piece).first(filled), promised));
    // One byte more than promised is asked for: it must not be there, and asking for it makes the
    // reader verify the checksum.
    const uint64_t wanted = std::min<uint64_t>(promised - done + 1, kInflatePieceBytes);
    LOCKSTEP_ASSIGN_OR_RETURN(filled,
                              reader.read(std::span(piece).first(static_cast<size_t>(wanted))));
    done += filled;
    if (filled > 0) continue;
    if (done == promised) return Status::ok();
    return bad("is truncated: it inflates to " + std::to_string(done) +
               " bytes, its header promises " + std::to_string(promised));
  }
}

Status inflate_bare(std::span<const uint8_t> compressed, uint64_t bytes, uint32_t crc,
                    const ByteSink& sink) {
  GzipReader reader(compressed, GzipReader::Wrapping::kNone);
  std::vector<uint8_t> piece(kInflatePieceBytes);
  uLong seen = ::crc32(0, nullptr, 0);
  const auto counted = [&](std::span<const uint8_t> part, uint64_t all) {
    seen = ::crc32(seen, part.data(), static_cast<uInt>(part.size()));
    return sink(part, all);
  };
  LOCKSTEP_RETURN_IF_ERROR(pass_on(reader, piece, 0, bytes, counted));
  return seen == crc ? Status::ok() : wrong_checksum();
}

Status check_crc32(std::span<const uint8_t> bytes, uint32_t crc) {
  uLong seen = ::crc32(0, nullptr, 0);
  for (size_t at = 0; at < bytes.size(); at += kMostPerCall) {
    const size_t n = std::min(bytes.size() - at, kMostPerCall);
    seen = ::crc32(seen, bytes.data() + at, static_cast<uInt>(n));
  }
  return seen == crc ? Status::ok() : wrong_checksum();
}

}  // namespace lockstep::data
