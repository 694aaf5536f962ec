#include "worker/script/worker_lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/fails_with.h"

namespace lockstep {
namespace {

TEST(WorkerLines, TellWhatAnAgentTells) {
  const auto told = parse_worker_lines(
      "run_dir=/runs/a=b\nlocal_rank=3\ngpu=1\nlog_name=worker-n-3\nworkers_here=4\nnode=n\n"
      "process=18446744073709551615\nin_hand_fd=7\ngpu_uuid=0123abcd\nof_tomorrow=yes\n");
  ASSERT_TRUE(told.is_ok()) << told.status().message();
  EXPECT_EQ(told->run_dir, "/runs/a=b");
  EXPECT_EQ(told->local_rank, 3U);
  EXPECT_EQ(told->gpu, 1U);
  EXPECT_EQ(told->log_name, "worker-n-3");
  EXPECT_EQ(told->workers_here, 4U);
  EXPECT_EQ(told->node, "n");
  EXPECT_EQ(told->process, ~uint64_t{0});
  EXPECT_EQ(told->in_hand_fd, 7);
  EXPECT_EQ(told->gpu_uuid, "0123abcd");
}

TEST(WorkerLines, AGpuIsTheLocalRankUnlessItIsSaid) {
  EXPECT_EQ(parse_worker_lines("run_dir=r\nlocal_rank=2").value().gpu, 2U);
  EXPECT_EQ(parse_worker_lines("run_dir=r").value().in_hand_fd, -1);
}

TEST(WorkerLines, AnythingElseIsRefusedByLine) {
  for (const char* text :
       {"run_dir=r\nlocal_rank=-1", "run_dir=r\nlocal_rank=1x", "run_dir=r\nworkers_here=0",
        "run_dir=r\nnonsense", "run_dir=r\nprocess=18446744073709551616"}) {
    EXPECT_THAT(
        parse_worker_lines(text).status(),
        FailsWith(Code::kUsage, Says(std::string(text).substr(10)), Advises("lockstep run")))
        << text;
  }
  EXPECT_THAT(parse_worker_lines("").status(), FailsWith(Code::kUsage, Names("run_dir")));
}

}  // namespace
}  // namespace lockstep
