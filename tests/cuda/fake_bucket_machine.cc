// tests/gpu/bucket_test.cc on the stand-ins: 8 GPUs in plain memory, and smaller buckets.
#include "tests/cuda/fake_cuda.h"
#include "tests/cuda/fake_nccl.h"
#include "tests/gpu/bucket_machine.h"

namespace lockstep::testing {

Result<BucketMachine> open_machine() {
  FakeNccl::get().reset();
  FakeCuda::get().reset();
  BucketMachine machine;
  machine.gpus = 8;
  machine.bucket_bytes = uint64_t{256} << 10;
  machine.api = FakeNccl::api();
  machine.is_hopeless = [] { return FakeNccl::get().is_hopeless(); };
  machine.misuses = [] {
    FakeCuda::get().reset();
    return FakeNccl::get().misuses();
  };
  return machine;
}

}  // namespace lockstep::testing
