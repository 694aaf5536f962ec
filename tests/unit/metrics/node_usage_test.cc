#include "metrics/node/node_usage.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "metrics/exporters/agent_metrics.h"
#include "tests/support/temporary_directory.h"
#include "tests/unit/metrics/exposition.h"

namespace lockstep::test {
namespace {

// A directory with proc/ and sys/ as the kernel writes them.
class NodeUsageTest : public testing::Test {
 protected:
  void write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }

  TemporaryDirectory temporary_;
  std::string root_ = temporary_.path() + "/";
};

TEST_F(NodeUsageTest, ProcessorTimeIsThatOfAllProcessorsByMode) {
  write("proc/stat",
        "cpu  100 50 30 400 20 5 5 7 0 0\n"
        "cpu0 60 25 15 200 10 5 5 7 0 0\n"
        "cpu1 40 25 15 200 10 0 0 0 0 0\n"
        "intr 123\nbtime 1700000000\n");
  const NodeUsage usage = read_node_usage(root_);
  EXPECT_EQ(usage.cpus, 2u);
  const double ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
  EXPECT_DOUBLE_EQ(usage.cpu_seconds[0], 150 / ticks) << kCpuModes[0];
  EXPECT_DOUBLE_EQ(usage.cpu_seconds[1], 40 / ticks) << kCpuModes[1];
  EXPECT_DOUBLE_EQ(usage.cpu_seconds[2], 400 / ticks) << kCpuModes[2];
  EXPECT_DOUBLE_EQ(usage.cpu_seconds[3], 20 / ticks) << kCpuModes[3];
  EXPECT_DOUBLE_EQ(usage.cpu_seconds[4], 7 / ticks) << kCpuModes[4];
}

TEST_F(NodeUsageTest, MemoryIsInBytes) {
  write("proc/meminfo",
        "MemTotal:        2000 kB\nMemFree:          100 kB\nMemAvailable:    1500 kB\n");
  const NodeUsage usage = read_node_usage(root_);
  EXPECT_EQ(usage.memory_bytes, 2000 * 1024);
  EXPECT_EQ(usage.memory_available_bytes, 1500 * 1024);
}

TEST_F(NodeUsageTest, DisksCountOnceAndTheirPartitionsAndVolumesNotAgain) {
  write("proc/diskstats",
        "   8       0 sda 10 1 100 5 20 2 300 9 0 7 14 0 0 0 0 0 0\n"
        "   8       1 sda1 10 1 100 5 20 2 300 9 0 7 14 0 0 0 0 0 0\n"
        " 253       0 dm-0 10 1 100 5 20 2 300 9 0 7 14 0 0 0 0 0 0\n"
        "   7       0 loop0 10 1 100 5 20 2 300 9 0 7 14 0 0 0 0 0 0\n"
        " 259       0 nvme0n1 1 0 8 1 1 0 16 1 0 1 2 0 0 0 0 0 0\n");
  for (const char* disk : {"sda", "nvme0n1"}) {
    write(std::string("sys/block/") + disk + "/device/model", "x");
  }
  write("sys/block/dm-0/size", "1");
  write("sys/block/loop0/size", "1");
  const NodeUsage usage = read_node_usage(root_);
  EXPECT_EQ(usage.disk_read_bytes, 108 * 512);
  EXPECT_EQ(usage.disk_written_bytes, 316 * 512);
}

TEST_F(NodeUsageTest, LoopbackIsNoNetwork) {
  write("proc/net/dev",
        "Inter-|   Receive                    |  Transmit\n"
        " face |bytes    packets errs drop fifo frame compressed multicast|bytes packets\n"
        "    lo: 900 1 0 0 0 0 0 0 900 1 0 0 0 0 0 0\n"
        "  eth0: 1000 1 0 0 0 0 0 0 20 1 0 0 0 0 0 0\n"
        "  lo1x:7 1 0 0 0 0 0 0 3 1 0 0 0 0 0 0\n");
  const NodeUsage usage = read_node_usage(root_);
  EXPECT_EQ(usage.network_received_bytes, 1007);
  EXPECT_EQ(usage.network_sent_bytes, 23);
}

TEST_F(NodeUsageTest, WhatIsNotThereOrDamagedIsZero) {
  write("proc/stat", "cpu\n");
  write("proc/diskstats", "   8       0 sda 10\n");
  write("sys/block/sda/device/model", "x");
  write("proc/net/dev", "  eth0: 1000\n");
  const NodeUsage usage = read_node_usage(root_);
  EXPECT_EQ(usage.cpus, 0u);
  EXPECT_EQ(usage.cpu_seconds[0], 0);
  EXPECT_EQ(usage.memory_bytes, 0);
  EXPECT_EQ(usage.disk_read_bytes, 0);
  EXPECT_EQ(usage.network_received_bytes, 0);
}

TEST(AgentMetrics, ShowsThisMachineAndTheWorkersThatWereCounted) {
  AgentMetrics metrics({.run = "r1", .node = "n1", .run_dir = "/"}, build_info());
  metrics.workers(2, 3);
  const ExposedFamilies families = parse_exposition(metrics.expose_text());
  const auto value = [&families](const std::string& name) {
    return families.at(name).series.at(name + R"({node="n1",run="r1"})");
  };
  EXPECT_GE(value("lockstep_node_cpus"), 1);
  EXPECT_GT(value("lockstep_node_memory_bytes"), value("lockstep_node_memory_available_bytes"));
  EXPECT_GT(value("lockstep_node_run_dir_bytes"), 0);
  EXPECT_EQ(value("lockstep_agent_workers"), 2);
  EXPECT_EQ(value("lockstep_agent_worker_deaths_total"), 3);
  double busy = 0;
  for (const auto& [series, s] : families.at("lockstep_node_cpu_seconds_total").series) busy += s;
  EXPECT_GT(busy, 0);
}

}  // namespace
}  // namespace lockstep::test
