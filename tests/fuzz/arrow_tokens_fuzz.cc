// Any bytes as an Arrow file of tokens, flat or in lists: refused, or streams whose tokens lie
// within it and whose documents end one after another.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "comm/base/check.h"
#include "data/formats/tokens/arrow_tokens.h"

namespace lockstep::data {
namespace {

void try_file(const std::string& path, size_t size) {
  // Without a cache, so it refuses compressed files: arrow_fuzz.cc inflates.
  const auto streams = open_arrow_tokens({path}, {}, "", {}, /*with_documents=*/true);
  if (!streams.is_ok()) return;
  for (const TokenStream& stream : *streams) {
    std::vector<int64_t> tokens;
    for (size_t i = 0; i < stream.pieces(); ++i) {
      LOCKSTEP_CHECK(stream.piece(i).size() <= size, "a piece lies within its file");
      tokens.resize(stream.piece(i).size() / stream.token_bytes());
      (void)stream.read(stream.first_of_piece(i), tokens.size(), tokens.data());
    }
    uint64_t last = 0;
    if (stream.document_ends()) {
      for (const uint64_t end : *stream.document_ends()) {
        LOCKSTEP_CHECK(end >= last && end <= stream.tokens(), "documents are of the stream");
        last = end;
      }
    }
  }
}

}  // namespace
}  // namespace lockstep::data

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const int fd = ::memfd_create("tokens.arrow", MFD_CLOEXEC);
  LOCKSTEP_CHECK(fd >= 0 && ::write(fd, data, size) == static_cast<ssize_t>(size),
                 "it can be written");
  lockstep::data::try_file("/proc/self/fd/" + std::to_string(fd), size);
  ::close(fd);
  return 0;
}
