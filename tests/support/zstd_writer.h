// Zstandard frames for tests.
#pragma once

#include <gtest/gtest.h>
#include <zstd.h>

#include <memory>
#include <string>

namespace lockstep::data {

// Writes a checksum, as the command zstd does and the library by itself does not.
inline std::string zstd_bytes(const std::string& plain, bool has_checksum = true,
                              int window_log = 0) {
  const std::unique_ptr<ZSTD_CCtx, size_t (*)(ZSTD_CCtx*)> context(ZSTD_createCCtx(),
                                                                   ZSTD_freeCCtx);
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_checksumFlag, has_checksum ? 1 : 0);
  // A stream of unknown length gets the requested window.
  if (window_log > 0) ZSTD_CCtx_setParameter(context.get(), ZSTD_c_windowLog, window_log);
  std::string out(ZSTD_compressBound(plain.size()) + 64, '\0');
  ZSTD_inBuffer source{plain.data(), plain.size(), 0};
  ZSTD_outBuffer target{out.data(), out.size(), 0};
  if (window_log == 0) ZSTD_CCtx_setPledgedSrcSize(context.get(), plain.size());
  if (window_log > 0) ZSTD_compressStream2(context.get(), &target, &source, ZSTD_e_flush);
  EXPECT_EQ(ZSTD_compressStream2(context.get(), &target, &source, ZSTD_e_end), 0U);
  out.resize(target.pos);
  return out;
}

}  // namespace lockstep::data
