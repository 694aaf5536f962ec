#include "data/io/reader.h"

#include <algorithm>
#include <utility>

namespace lockstep::data {

Status read_all(Reader& reader, std::span<const Read> reads) {
  size_t failed = reads.size();
  Status failure;
  size_t next = 0;
  while (next < reads.size() || reader.in_flight() > 0) {
    if (next < reads.size() && reader.in_flight() < reader.depth()) {
      reader.submit({reads[next].extent, reads[next].out, next});
      ++next;
      continue;
    }
    ReadDone done = reader.wait();
    if (done.status.is_ok() || done.tag >= failed) continue;
    failed = done.tag;
    failure = std::move(done.status);
  }
  return failure;
}

}  // namespace lockstep::data
