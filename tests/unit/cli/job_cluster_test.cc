// Keys of where a run computes: who can reach it, on which devices, and who sums.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "comm/run/job/bucket_size.h"
#include "deploy/cli/job/job_resolve.h"
#include "tests/support/fails_with.h"
#include "tests/unit/cli/job_fixture.h"

namespace lockstep {
namespace {

using ::testing::AllOf;
using testing::context;
using testing::error_of;
using ::testing::HasSubstr;
using testing::kMinimal;
using testing::resolved;
using testing::values_of;

TEST(JobResolve, WhatOthersCouldReachIsRefusedUntilItIsProtected) {
  EXPECT_THAT(error_of({"metrics.listen=0.0.0.0:9400"}, Code::kConfig),
              Advises("comm.tls", "token"));
  EXPECT_EQ(resolved({"metrics.listen=network:9400", "comm.tls=/certs"}).metrics().listen(),
            "network:9400");
  for (const char* backend : {"comm.backend=nccl", "comm.backend=mpi"})
    EXPECT_THAT(error_of({"comm.network=10.0.0.0/8", backend}, Code::kConfig),
                Says("authenticates", "encrypts"));
  EXPECT_THAT(
      error_of({"comm.network=10.0.0.0/8", "comm.backend=nccl", "comm.trusted_network=true"},
               Code::kConfig),
      ::testing::Not(HasSubstr("encrypts")));  // what is left to say is about GPUs
  EXPECT_THAT(error_of({"comm.network=10.0.0.0/8", "comm.nccl_hca=mlx5_0"}, Code::kConfig),
              AllOf(Names("comm.nccl_hca"), Advises("comm.trusted_network")));
}

TEST(JobResolve, CertificatesLieWhereTheJobSays) {
  EXPECT_EQ(resolved({"comm.tls=certs"}).comm().tls(), "/home/me/certs");
  EXPECT_EQ(resolved({}).comm().tls(), "");
  EXPECT_EQ(resolved({"metrics.hosts=[a.example, b]"}).metrics().hosts_size(), 2);
  EXPECT_EQ(resolved({}).metrics().hosts_size(), 0);
}

TEST(JobResolve, ANetworkIsLoopbackAPrefixOrAnInterface) {
  EXPECT_THAT(error_of({"comm.network=10.0.0.3"}), Names("comm.network is 10.0.0.3"));
  for (const char* network : {"loopback", "10.2.0.0/16", "fd00:1::/64", "eth0"})
    EXPECT_EQ(resolved({"comm.network=" + std::string(network)}).comm().network(), network);
}

TEST(JobResolve, TheCoordinatorIsAdvertisedByANameThatOthersCanReach) {
  EXPECT_EQ(resolved({"comm.network=eth0", "comm.advertise=shoes-0.shoes"}).comm().advertise(),
            "shoes-0.shoes");
  EXPECT_THAT(error_of({"comm.advertise=shoes-0.shoes"}), HasSubstr("comm.network"));
  for (const char* odd : {"shoes-0.shoes:4100", "10.2.0.7", "[fd00::1]", "a b", "localhost"})
    EXPECT_THAT(error_of({"comm.network=eth0", "comm.advertise=" + std::string(odd)}),
                Says("without a port"))
        << odd;
}

TEST(JobResolve, CudaWithoutAGpuIsRefusedWithTheReason) {
  EXPECT_THAT(error_of({"cluster.device=cuda"}, Code::kConfig),
              AllOf(Names("cluster.device is cuda", "command line"), Says("no GPU"),
                    Advises("cpu", "auto")));
}

TEST(JobResolve, AutoTakesTheGpusThatAreThereAndAWorkerForEach) {
  JobContext with_gpus = context();
  with_gpus.count_gpus = [] { return Result<uint32_t>(3); };
  auto job = resolve_job(values_of(kMinimal), with_gpus);
  ASSERT_TRUE(job.is_ok()) << job.status().message();
  EXPECT_EQ(job->cluster().device(), "cuda");
  EXPECT_EQ(job->cluster().workers(), 3u);
  EXPECT_EQ(job->train().slots(), 3u);
  job = resolve_job(values_of(kMinimal, {"cluster.device=cpu"}), with_gpus);
  EXPECT_EQ(job->cluster().device(), "cpu");
  EXPECT_EQ(job->cluster().workers(), 2u);
}

TEST(JobResolve, NcclIsForWorkersWithAGpuEach) {
  JobContext with_gpus = context();
  with_gpus.count_gpus = [] { return Result<uint32_t>(2u); };
  const auto backend = [&](const std::vector<std::string>& overrides) {
    const auto job = resolve_job(values_of(kMinimal, overrides), with_gpus);
    return job.is_ok() ? job->comm().backend() : job.status().message();
  };
  EXPECT_EQ(backend({"cluster.workers=2"}), "auto") << "the workers try NCCL";
  EXPECT_EQ(backend({"cluster.workers=1"}), "host");
  EXPECT_EQ(backend({"cluster.workers=3"}), "host") << "two of them share a GPU";
  EXPECT_EQ(backend({"cluster.workers=2", "comm.network=10.0.0.0/8"}), "host");
  EXPECT_EQ(backend({"cluster.workers=2", "comm.network=10.0.0.0/8", "comm.trusted_network=true"}),
            "auto");
  EXPECT_EQ(backend({"cluster.workers=2", "cluster.device=cpu"}), "host");
  EXPECT_EQ(backend({"cluster.workers=2", "comm.backend=nccl"}), "nccl");
  EXPECT_EQ(backend({"cluster.workers=1", "comm.backend=nccl"}), "nccl");
  EXPECT_THAT(backend({"cluster.workers=3", "comm.backend=nccl"}),
              AllOf(Says("2 for 3 workers"), Advises("host", "auto")));
  // mpirun with CUDA_VISIBLE_DEVICES for each rank, or several nodes: the coordinator compares.
  with_gpus.sees_gpus_of_all_workers = false;
  EXPECT_EQ(backend({"cluster.workers=3", "comm.backend=nccl"}), "nccl");
  EXPECT_EQ(backend({"cluster.workers=3"}), "auto");
  EXPECT_THAT(backend({"cluster.device=cpu", "comm.backend=nccl"}),
              AllOf(Names("cluster.device"), Says("GPUs")));
}

TEST(JobResolve, BucketsThatTheJobLeavesOpenAreAsLargeAsFitsWhoSums) {
  wire::CommSpec comm;
  EXPECT_EQ(bucket_bytes(comm, /*nccl_sums=*/true), uint64_t{32} << 20);
  EXPECT_EQ(bucket_bytes(comm, /*nccl_sums=*/false), uint64_t{4} << 20);
  comm.set_bucket_mb(0.5);
  for (const bool nccl_sums : {false, true})
    EXPECT_EQ(bucket_bytes(comm, nccl_sums), uint64_t{1} << 19);
}

TEST(JobResolve, NcclHasLargerBucketsUnlessTheJobSaysOtherwise) {
  JobContext with_gpus = context();
  with_gpus.count_gpus = [] { return Result<uint32_t>(2u); };
  const auto bucket_mb = [&](const std::vector<std::string>& overrides) {
    const auto job = resolve_job(values_of(kMinimal, overrides), with_gpus);
    EXPECT_TRUE(job.is_ok()) << job.status().message();
    return job.is_ok() ? job->comm().bucket_mb() : 0;
  };
  EXPECT_EQ(bucket_mb({"comm.backend=host"}), 4);
  EXPECT_EQ(bucket_mb({"comm.backend=nccl"}), 32);
  EXPECT_EQ(bucket_mb({"comm.backend=auto"}), 0) << "the workers find out who sums";
  EXPECT_EQ(bucket_mb({"comm.backend=auto", "cluster.device=cpu"}), 4);
  EXPECT_EQ(bucket_mb({"comm.backend=auto", "comm.bucket_mb=4"}), 4);
  EXPECT_EQ(bucket_mb({"comm.backend=nccl", "comm.bucket_mb=4"}), 4);
  // A resume keeps what the run has.
  const auto stored = resolve_job(values_of(kMinimal, {"comm.bucket_mb=8"}), with_gpus);
  ASSERT_TRUE(stored.is_ok());
  with_gpus.stored = &*stored;
  EXPECT_EQ(bucket_mb({"comm.backend=nccl"}), 8);
  with_gpus.stored = nullptr;
  const auto undecided = resolve_job(values_of(kMinimal, {}), with_gpus);
  ASSERT_TRUE(undecided.is_ok());
  with_gpus.stored = &*undecided;
  EXPECT_EQ(bucket_mb({}), 0);
  EXPECT_EQ(bucket_mb({"comm.backend=host"}), 4) << "now it is decided";
}

}  // namespace
}  // namespace lockstep
