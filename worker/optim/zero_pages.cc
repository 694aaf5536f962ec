#include "worker/optim/zero_pages.h"

#include <sys/mman.h>

#include <new>

namespace lockstep {

ZeroPages::ZeroPages(uint64_t floats) : bytes_(floats * sizeof(float)) {
  if (bytes_ == 0) return;
  void* const pages =
      ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) throw std::bad_alloc();
  data_ = static_cast<float*>(pages);
}

ZeroPages::~ZeroPages() {
  if (data_ != nullptr) ::munmap(data_, bytes_);
}

}  // namespace lockstep
