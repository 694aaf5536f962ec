#include "data/formats/arrays/idx_inflate.h"

#include <vector>

#include "comm/base/limits.h"
#include "data/files/inflate_cache.h"

namespace lockstep::data {

Result<IdxHeader> inflate_idx(std::span<const uint8_t> compressed, const ByteSink& sink) {
  GzipReader reader(compressed);
  std::vector<uint8_t> piece(kInflatePieceBytes);
  LOCKSTEP_ASSIGN_OR_RETURN(const size_t first,
                            reader.read(std::span(piece).first(limits::kIdxHeaderBytes)));
  LOCKSTEP_ASSIGN_OR_RETURN(const IdxHeader header,
                            parse_idx_header(std::span(piece).first(first)));
  LOCKSTEP_RETURN_IF_ERROR(pass_on(reader, piece, first, header.file_bytes(), sink));
  return header;
}

Result<MappedFile> open_inflated_idx(const std::string& path, const MappedFile& source,
                                     const std::string& cache_dir, const ProgressFn& progress) {
  const auto inflate = [&](const ByteSink& sink) {
    return inflate_idx(source.bytes(), sink).status();
  };
  Compressed what{path, "", inflate};
  what.mark = last_bytes(source);
  return open_inflated(what, source, cache_dir, progress);
}

}  // namespace lockstep::data
