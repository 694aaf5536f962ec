#include "deploy/agent/launch_env.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <vector>

#include "comm/base/gpu/visible_devices.h"
#include "comm/base/hash.h"
#include "comm/base/host_name.h"
#include "comm/base/limits.h"

namespace lockstep {
namespace {

constexpr char kPods[] = "Kubernetes";

struct Launcher {
  const char* name;
  const char* rank;
  std::vector<const char*> size;  // the first that is set
  const char* local_rank;         // null: none
  const char* local_size;
  std::vector<const char*> launch_id;  // all of them, where the first one is set
  const char* with = nullptr;          // which is set, too; null: any
};

// The variables of launchers without a row below: a rank, and the number of ranks.
struct OtherLauncher {
  const char* rank;
  const char* size;
};
constexpr OtherLauncher kOthers[] = {{"PALS_RANKID", "PALS_SIZE"},
                                     {"JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE"},
                                     {"FLUX_TASK_RANK", "FLUX_JOB_NTASKS"},
                                     {"MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"},
                                     {"ALPS_APP_PE", "ALPS_APP_SIZE"},
                                     {"MPI_RANKID", "MPI_NRANKS"},
                                     {"PMIX_RANK", "PMIX_SIZE"}};

// Beginnings and whole names of the variables that is_launch_variable() knows. Sites, not Slurm,
// set SLURM_TMPDIR.
constexpr std::string_view kPrefixes[] = {"OMPI_", "PMI_",  "PMIX_",      "SLURM_", "TORCHELASTIC_",
                                          "PET_",  "PALS_", "JSM_",       "FLUX_",  "MV2_",
                                          "ALPS_", "HYDI_", "I_MPI_HYDRA"};
constexpr std::string_view kNames[] = {"RANK",
                                       "WORLD_SIZE",
                                       "LOCAL_RANK",
                                       "LOCAL_WORLD_SIZE",
                                       "GROUP_RANK",
                                       "GROUP_WORLD_SIZE",
                                       "ROLE_RANK",
                                       "ROLE_NAME",
                                       "ROLE_WORLD_SIZE",
                                       "NODE_RANK",
                                       "MASTER_ADDR",
                                       "MASTER_PORT",
                                       "MPI_LOCALRANKID",
                                       "MPI_LOCALNRANKS",
                                       "MPI_RANKID",
                                       "MPI_NRANKS",
                                       "JOB_COMPLETION_INDEX",
                                       "LOCKSTEP_RANK",
                                       "LOCKSTEP_WORLD_SIZE",
                                       "LOCKSTEP_LOCAL_RANK",
                                       "LOCKSTEP_LOCAL_WORLD_SIZE",
                                       "LOCKSTEP_LAUNCH_ID",
                                       "LOCKSTEP_PODS",
                                       "LOCKSTEP_POD_ROLE"};
constexpr std::string_view kOfSites = "SLURM_TMPDIR";

const std::vector<Launcher>& launchers() {
  static const std::vector<Launcher> kLaunchers = {
      {"LOCKSTEP_RANK",
       "LOCKSTEP_RANK",
       {"LOCKSTEP_WORLD_SIZE"},
       "LOCKSTEP_LOCAL_RANK",
       "LOCKSTEP_LOCAL_WORLD_SIZE",
       {}},
      {"mpirun",
       "OMPI_COMM_WORLD_RANK",
       {"OMPI_COMM_WORLD_SIZE"},
       "OMPI_COMM_WORLD_LOCAL_RANK",
       "OMPI_COMM_WORLD_LOCAL_SIZE",
       // The number comes again with mpirun's pid; the key is drawn by chance for every launch.
       {"PMIX_NAMESPACE", "OMPI_MCA_orte_precondition_transports"}},
      // Hydra, of MPICH and Intel MPI. srun sets PMI_RANK, too, but not the local rank.
      {"mpiexec",
       "PMI_RANK",
       {"PMI_SIZE"},
       "MPI_LOCALRANKID",
       "MPI_LOCALNRANKS",
       {},
       "MPI_LOCALRANKID"},
      {"PET_NODE_RANK", "PET_NODE_RANK", {"PET_NNODES"}, nullptr, nullptr, {}},
      {"RANK", "RANK", {"WORLD_SIZE"}, "LOCAL_RANK", "LOCAL_WORLD_SIZE", {}},
      {kPods, "JOB_COMPLETION_INDEX", {"LOCKSTEP_PODS"}, nullptr, nullptr, {}},
      {"srun",
       "SLURM_PROCID",
       {"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"},
       "SLURM_LOCALID",
       nullptr,  // a list: tasks_of_node()
       {"SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_RESTART_COUNT"},
       "SLURM_STEP_ID"},
      {"PMI_RANK", "PMI_RANK", {"PMI_SIZE"}, nullptr, nullptr, {}}};
  return kLaunchers;
}

class Variables {
 public:
  explicit Variables(const ReadVariable& read) : read_(read) {}

  std::string_view text(const char* name) const {
    const char* value = name == nullptr ? nullptr : read_(name);
    return value == nullptr ? "" : value;
  }
  bool has(const char* name) const { return !text(name).empty(); }

  Result<uint32_t> number(const char* name, uint32_t least, uint32_t most) const {
    const std::string_view value = text(name);
    uint32_t number = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (error == std::errc() && end == value.data() + value.size() && number >= least &&
        number <= most)
      return number;
    return Status(Code::kUsage, std::string(name) + " is \"" + std::string(value) +
                                    "\" but must be a number from " + std::to_string(least) +
                                    " to " + std::to_string(most));
  }

 private:
  const ReadVariable& read_;
};

const Launcher* innermost(const Variables& variables) {
  for (const Launcher& launcher : launchers())
    if (variables.has(launcher.rank) && (launcher.with == nullptr || variables.has(launcher.with)))
      return &launcher;
  return nullptr;
}

// Every process would begin a run of its own, in one directory.
Status check_no_other(const Variables& variables) {
  for (const OtherLauncher& other : kOthers) {
    if (!variables.has(other.rank)) continue;
    return Status(Code::kUsage, std::string(other.rank) +
                                    " is set by a launcher whose variables Lockstep does not read. "
                                    "Set LOCKSTEP_RANK=$" +
                                    other.rank + ", LOCKSTEP_WORLD_SIZE=$" + other.size +
                                    " and a LOCKSTEP_LAUNCH_ID that is new for every launch; for a "
                                    "single process unset " +
                                    other.rank);
  }
  return Status::ok();
}

Status read_ranks(const Launcher& launcher, const Variables& variables, LaunchEnv& env) {
  const char* size = nullptr;
  for (const char* name : launcher.size)
    if (size == nullptr && variables.has(name)) size = name;
  if (size == nullptr)
    return Status(Code::kUsage, std::string(launcher.rank) + " is set, but " + launcher.size[0] +
                                    " (the number of ranks) is not; set both");
  LOCKSTEP_ASSIGN_OR_RETURN(env.size, variables.number(size, 1, limits::kMembers));
  LOCKSTEP_ASSIGN_OR_RETURN(env.rank, variables.number(launcher.rank, 0, env.size - 1));
  if (!variables.has(launcher.local_rank)) return Status::ok();
  const char* local_size = launcher.local_size;
  env.local_size = env.size;  // no more than that
  if (variables.has(local_size)) {
    LOCKSTEP_ASSIGN_OR_RETURN(env.local_size, variables.number(local_size, 1, env.size));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(env.local_rank,
                            variables.number(launcher.local_rank, 0, env.local_size - 1));
  return Status::ok();
}

// Pods of a role of its own come before those with workers.
Status read_pod(const Variables& variables, LaunchEnv& env) {
  env.local_rank = 0;  // one agent a pod
  const std::string_view role = variables.text("LOCKSTEP_POD_ROLE");
  if (role.empty()) return Status::ok();
  if (role != "coordinator" && role != "worker")
    return Status(Code::kUsage, "LOCKSTEP_POD_ROLE is \"" + std::string(role) +
                                    "\" but must be coordinator or worker");
  if (env.size >= limits::kMembers)
    return Status(Code::kUsage, "LOCKSTEP_PODS is " + std::to_string(env.size) + ", but at most " +
                                    std::to_string(limits::kMembers - 1) +
                                    " pods fit beside the coordinator's pod");
  if (role == "coordinator" && env.rank != 0)
    return Status(
        Code::kUsage,
        "the pod with rank " + std::to_string(env.rank) +
            " has LOCKSTEP_POD_ROLE=coordinator, but a run has only one coordinator's pod");
  if (role == "worker") ++env.rank;
  ++env.size;
  env.leader_keeps_workers = false;
  return Status::ok();
}

// Trainer's words for "as many as the node has": what the job and --workers say counts.
bool is_number_of_workers(std::string_view text) {
  return !text.empty() && text != "auto" && text != "gpu" && text != "cpu";
}

// Slurm's "2(x3),1": three nodes with two tasks each, then one with one. 0: it says something else.
uint32_t tasks_of_node(std::string_view list, uint32_t node) {
  const auto number = [&list](uint32_t& out) {
    const auto [end, error] = std::from_chars(list.data(), list.data() + list.size(), out);
    list.remove_prefix(static_cast<size_t>(end - list.data()));
    return error == std::errc();
  };
  while (!list.empty()) {
    uint32_t tasks = 0;
    uint32_t times = 1;
    if (!number(tasks)) return 0;
    if (list.starts_with("(x")) {
      list.remove_prefix(2);
      if (!number(times) || !list.starts_with(")")) return 0;
      list.remove_prefix(1);
    }
    if (node < times) return tasks;
    node -= times;
    if (!list.starts_with(",")) return 0;
    list.remove_prefix(1);
  }
  return 0;
}

Status read_slurm_local_size(const Variables& variables, LaunchEnv& env) {
  if (!variables.has("SLURM_STEP_TASKS_PER_NODE") || !variables.has("SLURM_NODEID"))
    return Status::ok();
  LOCKSTEP_ASSIGN_OR_RETURN(const uint32_t node,
                            variables.number("SLURM_NODEID", 0, limits::kMembers));
  const uint32_t tasks = tasks_of_node(variables.text("SLURM_STEP_TASKS_PER_NODE"), node);
  if (tasks > env.local_rank.value_or(0) && tasks <= env.size) env.local_size = tasks;
  return Status::ok();
}

// 0 if nothing is said of GPUs, or if all of the node's can be seen.
uint32_t own_gpus_of(const Variables& variables) {
  const auto all = variables.number("SLURM_GPUS_ON_NODE", 1, limits::kMembers);
  if (!all.is_ok()) return 0;
  const size_t seen = read_visible_devices(variables.text("CUDA_VISIBLE_DEVICES")).seen.size();
  return seen < *all ? static_cast<uint32_t>(seen) : 0;
}

// Reads a parameter as Open MPI does.
bool is_on(std::string_view value) {
  return value == "1" || value == "true" || value == "yes";
}

// Hashed: one of its parts is a key of Open MPI's.
std::string launch_id_of(const Launcher& launcher, const Variables& variables) {
  std::string text;
  if (variables.has("LOCKSTEP_LAUNCH_ID")) {
    text = variables.text("LOCKSTEP_LAUNCH_ID");
  } else {
    if (launcher.launch_id.empty() || !variables.has(launcher.launch_id[0])) return "";
    for (const char* name : launcher.launch_id) (text += variables.text(name)) += '/';
  }
  return xxh3_hex(text.data(), text.size());
}

}  // namespace

Result<LaunchEnv> read_launch_env(const ReadVariable& read) {
  const Variables variables(read);
  const Launcher* launcher = innermost(variables);
  LaunchEnv env;
  if (launcher == nullptr) {
    LOCKSTEP_RETURN_IF_ERROR(check_no_other(variables));
    return env;
  }
  env.launcher = launcher->name;
  LOCKSTEP_RETURN_IF_ERROR(read_ranks(*launcher, variables, env));
  if (env.launcher == "mpirun" && is_on(variables.text("OMPI_MCA_orte_allowed_exit_without_sync")))
    env.mpi_ranks = env.size;
  if (env.launcher == "srun") {
    LOCKSTEP_RETURN_IF_ERROR(read_slurm_local_size(variables, env));
    env.own_gpus = own_gpus_of(variables);
  }
  if (env.launcher == "PET_NODE_RANK") env.local_rank = 0;  // one process a node
  if (env.launcher == kPods) LOCKSTEP_RETURN_IF_ERROR(read_pod(variables, env));
  env.are_ranks_made_again = env.launcher != "mpirun" && variables.has("JOB_COMPLETION_INDEX");
  if (env.launcher == "PET_NODE_RANK" &&
      is_number_of_workers(variables.text("PET_NPROC_PER_NODE"))) {
    LOCKSTEP_ASSIGN_OR_RETURN(
        env.workers, variables.number("PET_NPROC_PER_NODE", 1, limits::kMembers / env.size));
  }
  if (env.size == 1 && !env.are_ranks_made_again) return env;
  env.launch_id = launch_id_of(*launcher, variables);
  if (env.launch_id.empty() && env.size > 1)
    return Status(
        Code::kUsage,
        std::string(launcher->rank) +
            " is set, but nothing distinguishes this launch from an earlier one: set "
            "LOCKSTEP_LAUNCH_ID to a value that all ranks share and that is new for every launch");
  return env;
}

bool is_launch_variable(std::string_view name) {
  if (name == kOfSites) return false;
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames) ||
         std::any_of(std::begin(kPrefixes), std::end(kPrefixes),
                     [name](std::string_view prefix) { return name.starts_with(prefix); });
}

std::string node_name(const ReadVariable& read) {
  const std::string_view given = Variables(read).text("LOCKSTEP_NODE");
  return given.empty() ? host_name() : std::string(given);
}

}  // namespace lockstep
