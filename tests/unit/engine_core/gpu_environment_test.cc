// Tests which of a site's NCCL variables a worker keeps, and which it sets.
#include "worker/engine/gpu_environment.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace lockstep {
namespace {

constexpr const char* kNames[] = {"NCCL_SOCKET_IFNAME",
                                  "NCCL_RAS_ENABLE",
                                  "NCCL_NET",
                                  "NCCL_COMM_ID",
                                  "NCCL_IB_HCA",
                                  "CUBLAS_WORKSPACE_CONFIG",
                                  "CUDA_MODULE_LOADING",
                                  "NCCL_DEBUG",
                                  "NCCL_DEBUG_FILE",
                                  "CUBLASLT_WORKSPACE_SIZE",
                                  "NVIDIA_TF32_OVERRIDE",
                                  "TORCH_BLAS_PREFER_CUBLASLT"};

class GpuEnvironment : public ::testing::Test {
 protected:
  void SetUp() override { clear(); }
  void TearDown() override { clear(); }

  static void clear() {
    for (const char* name : kNames) ::unsetenv(name);
  }
  static std::string value(const char* name) {
    const char* found = std::getenv(name);
    return found == nullptr ? "(none)" : found;
  }

  wire::JobSpec job;
};

TEST_F(GpuEnvironment, OnLoopbackNothingOfTheSiteLetsNcclOut) {
  ::setenv("NCCL_SOCKET_IFNAME", "eth0", 1);
  ::setenv("NCCL_NET", "IB", 1);
  ::setenv("NCCL_RAS_ENABLE", "1", 1);
  ::setenv("NCCL_COMM_ID", "10.0.0.1:9999", 1);
  apply_environment(gpu_environment(job, "lo"));
  EXPECT_EQ(value("NCCL_SOCKET_IFNAME"), "=lo");
  EXPECT_EQ(value("NCCL_NET"), "Socket");
  EXPECT_EQ(value("NCCL_RAS_ENABLE"), "0");
  EXPECT_EQ(value("NCCL_COMM_ID"), "(none)");
}

TEST_F(GpuEnvironment, OnATrustedNetworkTheSitesOwnSettingsStay) {
  job.mutable_comm()->set_trusted_network(true);
  ::setenv("NCCL_SOCKET_IFNAME", "^docker0,lo", 1);
  ::setenv("NCCL_NET", "AWS Libfabric", 1);
  ::setenv("NCCL_RAS_ENABLE", "1", 1);
  ::setenv("NCCL_IB_HCA", "mlx5_7", 1);
  apply_environment(gpu_environment(job, "eth0"));
  EXPECT_EQ(value("NCCL_SOCKET_IFNAME"), "^docker0,lo");
  EXPECT_EQ(value("NCCL_NET"), "AWS Libfabric");
  EXPECT_EQ(value("NCCL_RAS_ENABLE"), "1");
  EXPECT_EQ(value("NCCL_IB_HCA"), "mlx5_7");
}

TEST_F(GpuEnvironment, OnATrustedNetworkWithoutASitesSettingsTheJobDecides) {
  job.mutable_comm()->set_trusted_network(true);
  apply_environment(gpu_environment(job, "eth0"));
  EXPECT_EQ(value("NCCL_SOCKET_IFNAME"), "=eth0");
  EXPECT_EQ(value("NCCL_RAS_ENABLE"), "0");
  EXPECT_EQ(value("NCCL_NET"), "(none)");
  EXPECT_EQ(value("NCCL_IB_HCA"), "(none)");
}

TEST_F(GpuEnvironment, TheJobsAdaptersComeBeforeTheSites) {
  job.mutable_comm()->set_trusted_network(true);
  job.mutable_comm()->set_nccl_hca("mlx5_0,mlx5_1");
  ::setenv("NCCL_IB_HCA", "mlx5_7", 1);
  apply_environment(gpu_environment(job, "eth0"));
  EXPECT_EQ(value("NCCL_IB_HCA"), "mlx5_0,mlx5_1");
}

// Two nodes with other settings would compute other bits.
TEST_F(GpuEnvironment, ExactNumericsFixWhatCublasReadsWhateverTheSiteHasSet) {
  job.mutable_comm()->set_numerics("fast");
  apply_environment(gpu_environment(job, "lo"));
  EXPECT_EQ(value("CUBLAS_WORKSPACE_CONFIG"), "(none)");
  const char* const others[] = {"CUBLASLT_WORKSPACE_SIZE", "NVIDIA_TF32_OVERRIDE",
                                "TORCH_BLAS_PREFER_CUBLASLT"};
  ::setenv("CUBLAS_WORKSPACE_CONFIG", ":16:8", 1);
  for (const char* name : others) ::setenv(name, "1", 1);
  apply_environment(gpu_environment(job, "lo"));
  EXPECT_EQ(value("CUBLAS_WORKSPACE_CONFIG"), ":16:8");
  for (const char* name : others) EXPECT_EQ(value(name), "1") << name;
  job.mutable_comm()->set_numerics("exact");
  apply_environment(gpu_environment(job, "lo"));
  EXPECT_EQ(value("CUBLAS_WORKSPACE_CONFIG"), ":4096:8");
  for (const char* name : others) EXPECT_EQ(value(name), "(none)") << name;
}

TEST_F(GpuEnvironment, WhereNcclMaySumKernelsAreLoadedAtTheStartUnlessTheSiteSaysOtherwise) {
  job.mutable_comm()->set_backend("host");
  apply_environment(gpu_environment(job, "lo"));
  EXPECT_EQ(value("CUDA_MODULE_LOADING"), "(none)");
  for (const char* backend : {"nccl", "auto"}) {
    clear();
    job.mutable_comm()->set_backend(backend);
    apply_environment(gpu_environment(job, "lo"));
    EXPECT_EQ(value("CUDA_MODULE_LOADING"), "EAGER");
    ::setenv("CUDA_MODULE_LOADING", "LAZY", 1);
    apply_environment(gpu_environment(job, "lo"));
    EXPECT_EQ(value("CUDA_MODULE_LOADING"), "LAZY");
  }
}

TEST_F(GpuEnvironment, NcclWarnsInAFileUnlessTheSiteHasSetTheLevelOrTheFile) {
  job.mutable_comm()->set_backend("nccl");
  apply_environment(gpu_environment(job, "lo", "/run/logs/worker-0.nccl.txt"));
  EXPECT_EQ(value("NCCL_DEBUG"), "WARN");
  EXPECT_EQ(value("NCCL_DEBUG_FILE"), "/run/logs/worker-0.nccl.txt");
  ::setenv("NCCL_DEBUG", "INFO", 1);
  ::setenv("NCCL_DEBUG_FILE", "/tmp/nccl-%h.txt", 1);
  apply_environment(gpu_environment(job, "lo", "/run/logs/worker-0.nccl.txt"));
  EXPECT_EQ(value("NCCL_DEBUG"), "INFO");
  EXPECT_EQ(value("NCCL_DEBUG_FILE"), "/tmp/nccl-%h.txt");
  clear();
  apply_environment(gpu_environment(job, "lo"));  // there is no place for a file
  EXPECT_EQ(value("NCCL_DEBUG"), "WARN");
  EXPECT_EQ(value("NCCL_DEBUG_FILE"), "(none)");
  clear();
  job.mutable_comm()->set_backend("host");
  apply_environment(gpu_environment(job, "lo", "/run/logs/worker-0.nccl.txt"));
  EXPECT_EQ(value("NCCL_DEBUG"), "(none)");
}

TEST_F(GpuEnvironment, AWorkerOnTheCpuChangesNothing) {
  job.mutable_cluster()->set_device("cpu");
  EXPECT_TRUE(prepare_gpu_environment(job).is_ok());
  for (const char* name : kNames) EXPECT_EQ(value(name), "(none)") << name;
}

TEST_F(GpuEnvironment, ATrustedNetworkThatThisMachineIsNotInIsRefused) {
  job.mutable_cluster()->set_device("cuda");
  job.mutable_comm()->set_trusted_network(true);
  job.mutable_comm()->set_network("203.0.113.0/24");
  EXPECT_EQ(prepare_gpu_environment(job).code(), Code::kConfig);
  EXPECT_EQ(value("NCCL_SOCKET_IFNAME"), "(none)");
}

}  // namespace
}  // namespace lockstep
