// A BlobStore in memory, for tests and for the simulator: what a bucket would do that never fails.
//
// Thread-safety: as BlobStore.
#pragma once

#include <memory>

#include "comm/store/blob_store.h"

namespace lockstep::store {

std::unique_ptr<BlobStore> make_memory_blobs();

}  // namespace lockstep::store
