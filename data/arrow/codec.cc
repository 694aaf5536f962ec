#include "data/arrow/codec.h"

#include <lz4frame.h>
#include <zstd.h>

#include <array>
#include <cstring>
#include <memory>

#include "comm/base/byte_units.h"
#include "comm/base/check.h"
#include "comm/base/little_endian.h"
#include "data/base/file_errors.h"

namespace lockstep::data {
namespace {

constexpr size_t kLengthBytes = 8;
constexpr size_t kPieceBytes = 256 * kKib;
constexpr int kZstdLevel = 1;  // a file that is read once an epoch has to be fast

Status not_as_said() {
  return bad("is damaged: a compressed buffer does not inflate to the size in its header");
}

// One step of a decoder: takes from `in`, gives into `out`. False if it cannot read the input.
struct Step {
  size_t taken = 0;
  size_t given = 0;
  bool is_end = false;
};
using StepFn = std::function<bool(std::span<const uint8_t> in, std::span<uint8_t> out, Step&)>;

Status inflate_by(const StepFn& step, std::span<const uint8_t> in, uint64_t wanted,
                  const ArrowSink& sink) {
  const auto piece = std::make_unique<std::array<uint8_t, kPieceBytes>>();
  bool is_end = false;
  while (!is_end) {
    Step done;
    if (!step(in, *piece, done)) return not_as_said();
    // A decoder that neither takes nor gives waits for input that is not there.
    if (done.given > wanted || (done.taken == 0 && done.given == 0 && !done.is_end))
      return not_as_said();
    in = in.subspan(done.taken);
    wanted -= done.given;
    is_end = done.is_end;
    if (done.given > 0) LOCKSTEP_RETURN_IF_ERROR(sink(std::span(*piece).first(done.given)));
  }
  return wanted == 0 && in.empty() ? Status::ok() : not_as_said();
}

Status inflate_zstd(std::span<const uint8_t> in, uint64_t wanted, const ArrowSink& sink) {
  const std::unique_ptr<ZSTD_DCtx, size_t (*)(ZSTD_DCtx*)> context(ZSTD_createDCtx(),
                                                                   ZSTD_freeDCtx);
  return inflate_by(
      [&](std::span<const uint8_t> from, std::span<uint8_t> to, Step& done) {
        ZSTD_inBuffer source{from.data(), from.size(), 0};
        ZSTD_outBuffer target{to.data(), to.size(), 0};
        const size_t left = ZSTD_decompressStream(context.get(), &target, &source);
        done = {source.pos, target.pos, left == 0};
        return ZSTD_isError(left) == 0;
      },
      in, wanted, sink);
}

Status inflate_lz4(std::span<const uint8_t> in, uint64_t wanted, const ArrowSink& sink) {
  LZ4F_dctx* made = nullptr;
  if (LZ4F_isError(LZ4F_createDecompressionContext(&made, LZ4F_VERSION)) != 0)
    return {Code::kInternal, "not enough memory to inflate LZ4"};
  const std::unique_ptr<LZ4F_dctx, LZ4F_errorCode_t (*)(LZ4F_dctx*)> context(
      made, LZ4F_freeDecompressionContext);
  return inflate_by(
      [&](std::span<const uint8_t> from, std::span<uint8_t> to, Step& done) {
        size_t taken = from.size();
        size_t given = to.size();
        const size_t left =
            LZ4F_decompress(context.get(), to.data(), &given, from.data(), &taken, nullptr);
        done = {taken, given, left == 0};
        return LZ4F_isError(left) == 0;
      },
      in, wanted, sink);
}

void set_length(int64_t bytes, char* at) {
  std::memcpy(at, &bytes, sizeof bytes);
}

}  // namespace

Result<uint64_t> inflated_bytes(std::span<const uint8_t> buffer) {
  if (buffer.empty()) return uint64_t{0};
  if (buffer.size() < kLengthBytes) return not_as_said();
  const auto said = load_le<int64_t>(buffer.data());
  if (said == -1) return uint64_t{buffer.size() - kLengthBytes};
  if (said < 0) return not_as_said();
  return static_cast<uint64_t>(said);
}

Status inflate_buffer(ArrowCodec codec, std::span<const uint8_t> buffer, const ArrowSink& sink) {
  LOCKSTEP_ASSIGN_OR_RETURN(const uint64_t wanted, inflated_bytes(buffer));
  if (buffer.empty()) return Status::ok();
  const auto content = buffer.subspan(kLengthBytes);
  if (load_le<int64_t>(buffer.data()) == -1) return sink(content);
  return codec == ArrowCodec::kZstd ? inflate_zstd(content, wanted, sink)
                                    : inflate_lz4(content, wanted, sink);
}

void append_packed(ArrowCodec codec, std::span<const uint8_t> plain, std::string& out) {
  if (plain.empty()) return;
  const size_t begin = out.size();
  const bool is_zstd = codec == ArrowCodec::kZstd;
  const size_t room =
      is_zstd ? ZSTD_compressBound(plain.size()) : LZ4F_compressFrameBound(plain.size(), nullptr);
  out.resize(begin + kLengthBytes + room);
  char* to = out.data() + begin + kLengthBytes;
  const size_t got = is_zstd ? ZSTD_compress(to, room, plain.data(), plain.size(), kZstdLevel)
                             : LZ4F_compressFrame(to, room, plain.data(), plain.size(), nullptr);
  const bool failed = is_zstd ? ZSTD_isError(got) != 0 : LZ4F_isError(got) != 0;
  LOCKSTEP_CHECK(!failed, "what is compressed has room");
  if (got < plain.size()) {
    set_length(static_cast<int64_t>(plain.size()), out.data() + begin);
    out.resize(begin + kLengthBytes + got);
    return;
  }
  set_length(-1, out.data() + begin);
  out.resize(begin + kLengthBytes + plain.size());
  std::memcpy(out.data() + begin + kLengthBytes, plain.data(), plain.size());
}

}  // namespace lockstep::data
