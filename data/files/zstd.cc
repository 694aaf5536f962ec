#include "data/files/zstd.h"

#include <zstd.h>
#include <zstd_errors.h>

#include <string>

#include "comm/base/check.h"
#include "comm/base/little_endian.h"
#include "data/base/file_errors.h"

namespace lockstep::data {
namespace {

constexpr int kWindowLog = 27;
static_assert(kZstdWindowBytes == uint64_t{1} << kWindowLog);

Status failure_of(size_t code) {
  if (ZSTD_getErrorCode(code) == ZSTD_error_frameParameter_windowTooLarge)
    return bad("needs more than " + std::to_string(kZstdWindowBytes >> 20) +
               " MiB of memory to inflate; compress it without --long");
  return bad("is corrupt: its zstd stream cannot be inflated (" +
             std::string(ZSTD_getErrorName(code)) + ")");
}

}  // namespace

bool is_zstd(std::span<const uint8_t> bytes) {
  return bytes.size() >= 4 && load_le<uint32_t>(bytes.data()) == ZSTD_MAGICNUMBER;
}

struct ZstdReader::Impl {
  std::unique_ptr<ZSTD_DCtx, size_t (*)(ZSTD_DCtx*)> context{ZSTD_createDCtx(), ZSTD_freeDCtx};
  ZSTD_inBuffer in;
  bool is_between_frames = false;
  Status failure;  // once it failed it stays failed

  bool has_ended() const { return is_between_frames && in.pos == in.size; }

  // One call of the library.
  Status advance(ZSTD_outBuffer& out) {
    const size_t taken_before = in.pos;
    const size_t given_before = out.pos;
    const size_t left = ZSTD_decompressStream(context.get(), &out, &in);
    if (ZSTD_isError(left) != 0) return failure_of(left);
    is_between_frames = left == 0;
    if (has_ended()) return Status::ok();
    const bool is_stuck = in.pos == taken_before && out.pos == given_before;
    return is_stuck ? bad("is truncated: its zstd stream ends early") : Status::ok();
  }
};

ZstdReader::ZstdReader(std::span<const uint8_t> compressed) : impl_(std::make_unique<Impl>()) {
  LOCKSTEP_CHECK(impl_->context != nullptr, "no memory to inflate");
  impl_->in = {compressed.data(), compressed.size(), 0};
  const size_t set = ZSTD_DCtx_setParameter(impl_->context.get(), ZSTD_d_windowLogMax, kWindowLog);
  LOCKSTEP_CHECK(ZSTD_isError(set) == 0, "ZSTD_d_windowLogMax");
}
ZstdReader::~ZstdReader() = default;

Result<size_t> ZstdReader::read(std::span<uint8_t> out) {
  ZSTD_outBuffer target{out.data(), out.size(), 0};
  while (target.pos < target.size && !impl_->has_ended() && impl_->failure.is_ok())
    impl_->failure = impl_->advance(target);
  if (!impl_->failure.is_ok()) return impl_->failure;
  return target.pos;
}

}  // namespace lockstep::data
