#include "deploy/agent/launch_env.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "comm/base/host_name.h"

namespace lockstep {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using Variables = std::map<std::string, std::string>;

Result<LaunchEnv> read(const Variables& variables) {
  return read_launch_env([&](const char* name) {
    const auto it = variables.find(name);
    return it == variables.end() ? nullptr : it->second.c_str();
  });
}

Variables with(Variables variables, const Variables& more) {
  for (const auto& [name, value] : more) variables[name] = value;
  return variables;
}

const Variables kMpirun = {
    {"OMPI_COMM_WORLD_RANK", "2"},       {"OMPI_COMM_WORLD_SIZE", "4"},
    {"OMPI_COMM_WORLD_LOCAL_RANK", "0"}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
    {"PMIX_NAMESPACE", "545783809"},     {"OMPI_MCA_orte_precondition_transports", "132c-b61a"}};
const Variables kSrun = {{"SLURM_PROCID", "5"},  {"SLURM_STEP_NUM_TASKS", "7"},
                         {"SLURM_NTASKS", "9"},  {"SLURM_LOCALID", "1"},
                         {"SLURM_NODEID", "2"},  {"SLURM_STEP_TASKS_PER_NODE", "2(x3),1"},
                         {"SLURM_JOB_ID", "41"}, {"SLURM_STEP_ID", "0"}};

TEST(LaunchEnv, WithoutALauncherThereIsOneRank) {
  const auto env = read({{"HOME", "/root"}});
  ASSERT_TRUE(env.is_ok());
  EXPECT_FALSE(env->is_launched());
  EXPECT_EQ(env->rank, 0u);
  EXPECT_EQ(env->size, 1u);
}

TEST(LaunchEnv, MpirunNamesRankAndPlaceOnTheHost) {
  const auto env = read(kMpirun);
  ASSERT_TRUE(env.is_ok()) << env.status().message();
  EXPECT_EQ(env->launcher, "mpirun");
  EXPECT_EQ(env->rank, 2u);
  EXPECT_EQ(env->size, 4u);
  EXPECT_EQ(env->local_rank, 0u);
  EXPECT_EQ(env->local_size, 2u);
  EXPECT_FALSE(env->workers.has_value());
  EXPECT_EQ(env->mpi_ranks, 0u);
}

TEST(LaunchEnv, WhatTellsAPlaceInAGroupIsALaunchersVariable) {
  for (const Variables& variables : {kMpirun, kSrun})
    for (const auto& [name, value] : variables) EXPECT_TRUE(is_launch_variable(name)) << name;
  for (const char* name :
       {"RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "PMI_SIZE", "TORCHELASTIC_RUN_ID",
        "PET_NODE_RANK", "MPI_LOCALRANKID", "PALS_RANKID", "JSM_NAMESPACE_RANK", "FLUX_TASK_RANK",
        "MV2_COMM_WORLD_RANK", "ALPS_APP_PE", "MPI_RANKID", "LOCKSTEP_RANK"})
    EXPECT_TRUE(is_launch_variable(name)) << name;
  for (const char* name : {"PATH", "HOME", "SLURM_TMPDIR", "CUDA_VISIBLE_DEVICES", "RANKS",
                           "LOCKSTEP_PYTHON", "OMP_NUM_THREADS", "LD_LIBRARY_PATH", ""})
    EXPECT_FALSE(is_launch_variable(name)) << name;
}

TEST(LaunchEnv, HydraNamesRankAndPlaceButNotTheLaunch) {
  const Variables hydra = {
      {"PMI_RANK", "3"}, {"PMI_SIZE", "4"}, {"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "2"}};
  const auto nameless = read(hydra);
  EXPECT_EQ(nameless.status().code(), Code::kUsage);
  EXPECT_THAT(nameless.status().message(),
              AllOf(HasSubstr("PMI_RANK"), HasSubstr("LOCKSTEP_LAUNCH_ID")));
  // Hydra that was started in an allocation has the variables of srun's step for its daemon.
  for (const Variables& around : {Variables{}, kSrun}) {
    const auto env = read(with(with(around, hydra), {{"LOCKSTEP_LAUNCH_ID", "a"}}));
    ASSERT_TRUE(env.is_ok()) << env.status().message();
    EXPECT_EQ(env->launcher, "mpiexec");
    EXPECT_EQ(env->rank, 3u);
    EXPECT_EQ(env->size, 4u);
    EXPECT_EQ(env->local_rank, 1u);
    EXPECT_EQ(env->local_size, 2u);
  }
}

TEST(LaunchEnv, SrunThatSpeaksPmiIsSrun) {
  const auto env = read(with(kSrun, {{"PMI_RANK", "5"}, {"PMI_SIZE", "7"}}));
  ASSERT_TRUE(env.is_ok()) << env.status().message();
  EXPECT_EQ(env->launcher, "srun");
  EXPECT_EQ(env->local_rank, 1u);
}

TEST(LaunchEnv, ALauncherThatIsNotReadIsRefusedWithWhatToSet) {
  for (const char* rank :
       {"FLUX_TASK_RANK", "PALS_RANKID", "JSM_NAMESPACE_RANK", "MV2_COMM_WORLD_RANK"}) {
    const auto env = read({{rank, "0"}});
    EXPECT_EQ(env.status().code(), Code::kUsage) << rank;
    EXPECT_THAT(env.status().message(), AllOf(HasSubstr(std::string("LOCKSTEP_RANK=$") + rank),
                                              HasSubstr("LOCKSTEP_LAUNCH_ID")));
    EXPECT_TRUE(read(with(kMpirun, {{rank, "0"}})).is_ok()) << rank << " of a launcher around";
  }
}

TEST(LaunchEnv, AllRanksOfMpirunAreOneMpiWorldIfItLetsOneDie) {
  const auto ranks = [](const Variables& base, const char* value) {
    return read(with(base, {{"OMPI_MCA_orte_allowed_exit_without_sync", value}}))->mpi_ranks;
  };
  EXPECT_EQ(ranks(kMpirun, "1"), 4u);
  EXPECT_EQ(ranks(kMpirun, "true"), 4u);
  EXPECT_EQ(ranks(kMpirun, "0"), 0u);
  EXPECT_EQ(ranks(kSrun, "1"), 0u);
}

TEST(LaunchEnv, SrunNamesItsStepsTasksAndTheListSaysHowManyAreOnTheNode) {
  const auto env = read(kSrun);
  ASSERT_TRUE(env.is_ok()) << env.status().message();
  EXPECT_EQ(env->launcher, "srun");
  EXPECT_EQ(env->rank, 5u);
  EXPECT_EQ(env->size, 7u);
  EXPECT_EQ(env->local_rank, 1u);
  EXPECT_EQ(env->local_size, 2u);
  EXPECT_EQ(
      read(with(kSrun, {{"SLURM_PROCID", "6"}, {"SLURM_LOCALID", "0"}, {"SLURM_NODEID", "3"}}))
          ->local_size,
      1u);
}

TEST(LaunchEnv, AListOfTasksThatIsNoneLeavesTheLargestNumberThereCanBe) {
  for (const char* list : {"", "x", "2(x", "2(x3", "1(x2)1", "1", ",", "4294967296", "2(x0),"})
    EXPECT_EQ(read(with(kSrun, {{"SLURM_STEP_TASKS_PER_NODE", list}}))->local_size, 7u) << list;
}

TEST(LaunchEnv, WhoSeesFewerGpusThanTheNodeHasForTheJobHasThemForItself) {
  const auto own_gpus = [](const char* seen, const char* all) {
    return read(with(kSrun, {{"CUDA_VISIBLE_DEVICES", seen}, {"SLURM_GPUS_ON_NODE", all}}))
        ->own_gpus;
  };
  EXPECT_EQ(own_gpus("1", "4"), 1u) << "--gpus-per-task=1";
  EXPECT_EQ(own_gpus("2,3", "4"), 2u) << "--gpus-per-task=2";
  EXPECT_EQ(own_gpus("0,1,2,3", "4"), 0u) << "--gpus-per-node=4: all see all";
  EXPECT_EQ(own_gpus("", "4"), 0u);
  EXPECT_EQ(own_gpus("1", ""), 0u);
  EXPECT_EQ(own_gpus("1", "many"), 0u);
  EXPECT_EQ(own_gpus("GPU-8932f937,GPU-77aa", "4"), 2u);
  EXPECT_EQ(own_gpus("GPU-a,GPU-a", "2"), 1u) << "one GPU, named twice";
  EXPECT_EQ(own_gpus("MIG-af8a,MIG-bb1c", "2"), 1u) << "CUDA shows one slice";
  EXPECT_EQ(own_gpus("0,1,-1,2,3", "4"), 2u);
  EXPECT_EQ(own_gpus("NoDevFiles", "4"), 0u) << "this rank got none";
  EXPECT_EQ(
      read(with(kMpirun, {{"CUDA_VISIBLE_DEVICES", "1"}, {"SLURM_GPUS_ON_NODE", "4"}}))->own_gpus,
      0u)
      << "of the allocation, not of the rank";
}

TEST(LaunchEnv, InTheBatchScriptOfSlurmThereIsNoLauncher) {
  Variables batch = kSrun;
  batch.erase("SLURM_STEP_ID");
  EXPECT_FALSE(read(batch)->is_launched());
}

TEST(LaunchEnv, OneProcessANodeKeepsAsManyWorkersAsItsLauncherSays) {
  const auto env = read({{"PET_NODE_RANK", "1"},
                         {"PET_NNODES", "2"},
                         {"PET_NPROC_PER_NODE", "8"},
                         {"RANK", "9"},
                         {"WORLD_SIZE", "16"},
                         {"LOCKSTEP_LAUNCH_ID", "a"}});
  ASSERT_TRUE(env.is_ok()) << env.status().message();
  EXPECT_EQ(env->rank, 1u);
  EXPECT_EQ(env->size, 2u);
  EXPECT_EQ(env->workers, 8u);
  EXPECT_EQ(env->local_rank, 0u);
  EXPECT_EQ(env->local_size, 1u);
}

TEST(LaunchEnv, PlainVariablesNeedANameOfTheLaunchUnlessThereIsOneRank) {
  const Variables plain = {
      {"RANK", "1"}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", "1"}, {"LOCAL_WORLD_SIZE", "2"}};
  const auto refused = read(plain);
  ASSERT_FALSE(refused.is_ok());
  EXPECT_EQ(refused.status().code(), Code::kUsage);
  EXPECT_THAT(refused.status().message(), HasSubstr("LOCKSTEP_LAUNCH_ID"));
  const auto named = read(with(plain, {{"LOCKSTEP_LAUNCH_ID", "a"}}));
  ASSERT_TRUE(named.is_ok());
  EXPECT_EQ(named->local_rank, 1u);
  EXPECT_TRUE(read({{"RANK", "0"}, {"WORLD_SIZE", "1"}}).is_ok());
}

TEST(LaunchEnv, OfSeveralLaunchersTheInnermostCounts) {
  const Variables all =
      with(with(kSrun, kMpirun),
           {{"RANK", "0"}, {"WORLD_SIZE", "1"}, {"PET_NODE_RANK", "0"}, {"PET_NNODES", "1"}});
  EXPECT_EQ(read(all)->launcher, "mpirun") << "mpirun inside sbatch: SLURM_PROCID is its daemon's";
  Variables inner = all;
  for (const auto& [name, value] : kMpirun) inner.erase(name);
  EXPECT_EQ(read(inner)->launcher, "PET_NODE_RANK");
  inner.erase("PET_NODE_RANK");
  EXPECT_EQ(read(inner)->launcher, "RANK");
  inner.erase("RANK");
  EXPECT_EQ(read(inner)->launcher, "srun");
  const auto own = read(with(
      all, {{"LOCKSTEP_RANK", "3"}, {"LOCKSTEP_WORLD_SIZE", "8"}, {"LOCKSTEP_LAUNCH_ID", "a"}}));
  ASSERT_TRUE(own.is_ok());
  EXPECT_EQ(own->rank, 3u);
  EXPECT_EQ(own->size, 8u);
  EXPECT_FALSE(own->local_rank.has_value()) << "that of another launcher";
}

TEST(LaunchEnv, AllRanksOfALaunchHaveItsNameAndNoOtherLaunchHas) {
  const std::string id = read(kMpirun)->launch_id;
  EXPECT_FALSE(id.empty());
  EXPECT_EQ(read(with(kMpirun, {{"OMPI_COMM_WORLD_RANK", "3"}}))->launch_id, id);
  EXPECT_NE(read(with(kMpirun, {{"OMPI_MCA_orte_precondition_transports", "77"}}))->launch_id, id)
      << "mpirun had the same pid once before";
  const std::string step = read(kSrun)->launch_id;
  EXPECT_EQ(read(with(kSrun, {{"SLURM_PROCID", "0"}}))->launch_id, step);
  for (const char* name : {"SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_RESTART_COUNT"})
    EXPECT_NE(read(with(kSrun, {{name, "12"}}))->launch_id, step) << name;
}

TEST(LaunchEnv, NonsenseIsRefusedWithVariableAndValue) {
  for (const auto& [name, value] : Variables{{"OMPI_COMM_WORLD_RANK", "4"},
                                             {"OMPI_COMM_WORLD_SIZE", "0"},
                                             {"OMPI_COMM_WORLD_SIZE", "1000000"},
                                             {"OMPI_COMM_WORLD_LOCAL_RANK", "2"},
                                             {"OMPI_COMM_WORLD_LOCAL_SIZE", "5"}}) {
    const auto env = read(with(kMpirun, {{name, value}}));
    ASSERT_FALSE(env.is_ok()) << name;
    EXPECT_EQ(env.status().code(), Code::kUsage);
    EXPECT_THAT(env.status().message(), HasSubstr(name + " is \"" + value + "\""));
  }
  for (const char* value : {"-1", "2 ", "0x1", "1.0", "two", "99999999999999999999"})
    EXPECT_FALSE(read(with(kMpirun, {{"OMPI_COMM_WORLD_RANK", value}})).is_ok()) << value;
  const auto lonely = read({{"LOCKSTEP_RANK", "1"}});
  ASSERT_FALSE(lonely.is_ok());
  EXPECT_THAT(lonely.status().message(), HasSubstr("LOCKSTEP_WORLD_SIZE"));
}

const Variables kPod = {
    {"JOB_COMPLETION_INDEX", "1"}, {"LOCKSTEP_PODS", "3"}, {"LOCKSTEP_LAUNCH_ID", "0b5c/0"}};

TEST(LaunchEnv, APodIsTheRankOfItsIndex) {
  const auto env = read(kPod);
  ASSERT_TRUE(env.is_ok()) << env.status().message();
  EXPECT_EQ(env->launcher, "Kubernetes");
  EXPECT_EQ(env->rank, 1u);
  EXPECT_EQ(env->size, 3u);
  EXPECT_EQ(env->ranks_with_workers(), 3u);
  EXPECT_TRUE(env->are_ranks_made_again);
  EXPECT_EQ(env->launch_id, read(with(kPod, {{"JOB_COMPLETION_INDEX", "0"}}))->launch_id);
}

TEST(LaunchEnv, ACoordinatorsPodIsRankZeroAndPodsWithWorkersComeAfterIt) {
  const auto worker = read(with(kPod, {{"LOCKSTEP_POD_ROLE", "worker"}}));
  ASSERT_TRUE(worker.is_ok()) << worker.status().message();
  EXPECT_EQ(worker->rank, 2u);
  EXPECT_EQ(worker->size, 4u);
  const auto coordinator =
      read(with(kPod, {{"LOCKSTEP_POD_ROLE", "coordinator"}, {"JOB_COMPLETION_INDEX", "0"}}));
  ASSERT_TRUE(coordinator.is_ok()) << coordinator.status().message();
  EXPECT_EQ(coordinator->rank, 0u);
  EXPECT_EQ(coordinator->size, 4u);
  EXPECT_FALSE(coordinator->leader_keeps_workers);
  EXPECT_EQ(coordinator->ranks_with_workers(), 3u);
  EXPECT_EQ(coordinator->launch_id, worker->launch_id);
}

TEST(LaunchEnv, NonsenseAboutAPodIsRefused) {
  for (const Variables& nonsense :
       {Variables{{"LOCKSTEP_POD_ROLE", "boss"}}, Variables{{"JOB_COMPLETION_INDEX", "3"}},
        Variables{{"LOCKSTEP_POD_ROLE", "coordinator"}}, Variables{{"LOCKSTEP_PODS", ""}},
        Variables{{"LOCKSTEP_LAUNCH_ID", ""}}}) {
    EXPECT_EQ(read(with(kPod, nonsense)).status().code(), Code::kUsage)
        << nonsense.begin()->first << "=" << nonsense.begin()->second;
  }
}

TEST(LaunchEnv, TrainersNodesAreMadeAgainAndItsWordsForWorkersAreNone) {
  const auto env = read(
      with(kPod, {{"PET_NODE_RANK", "1"}, {"PET_NNODES", "2"}, {"PET_NPROC_PER_NODE", "auto"}}));
  ASSERT_TRUE(env.is_ok()) << env.status().message();
  EXPECT_EQ(env->launcher, "PET_NODE_RANK");
  EXPECT_EQ(env->size, 2u);
  EXPECT_FALSE(env->workers.has_value());
  EXPECT_TRUE(env->are_ranks_made_again);
}

TEST(LaunchEnv, APodThatIsAloneHasALaunchTooSinceItIsMadeAgain) {
  const auto env = read(with(kPod, {{"JOB_COMPLETION_INDEX", "0"}, {"LOCKSTEP_PODS", "1"}}));
  ASSERT_TRUE(env.is_ok()) << env.status().message();
  EXPECT_EQ(env->size, 1u);
  EXPECT_FALSE(env->launch_id.empty());
}

TEST(LaunchEnv, MpirunsRanksAreNotMadeAgainWhereverTheyAre) {
  EXPECT_FALSE(read(with(kPod, kMpirun))->are_ranks_made_again);
}

TEST(LaunchEnv, ANodeIsCalledAsItIsToldOrAsTheHost) {
  const auto name = [](const char* value) {
    return node_name([value](const char*) { return value; });
  };
  EXPECT_EQ(name("shoes-worker-0-1-x7k2p"), "shoes-worker-0-1-x7k2p");
  EXPECT_EQ(name(nullptr), host_name());
}

}  // namespace
}  // namespace lockstep
