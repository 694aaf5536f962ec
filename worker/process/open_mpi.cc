#include "worker/process/open_mpi.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>

#include "comm/collectives/mpi/mpi_module.h"

namespace lockstep {
namespace {

Status refused(const std::string& why) {
  return {Code::kConfig, "comm.backend mpi: " + why + "; or take comm.backend: host"};
}

std::string module_path() {
  std::error_code error;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
  return (program.parent_path() / kMpiModuleLibrary).string();
}

}  // namespace

void prepare_mpi_environment(const std::string& interface) {
  ::setenv("OMPI_MCA_btl_tcp_if_include", interface.c_str(), /*overwrite=*/1);
  ::unsetenv("OMPI_MCA_btl_tcp_if_exclude");  // both are an error
}

Result<std::unique_ptr<MpiLane>> open_mpi(bool fast) {
  if (std::getenv("OMPI_COMM_WORLD_RANK") == nullptr) return std::unique_ptr<MpiLane>();
  const std::string path = module_path();
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    return refused("its module cannot be loaded: " + std::string(dlerror()) +
                   "; install Open MPI (libopenmpi-dev) and build Lockstep again");
  const auto enter = reinterpret_cast<EnterMpiWorld>(dlsym(library, kMpiModuleEntry));
  const EnteredWorld entered = enter == nullptr ? EnteredWorld{} : enter(fast);
  if (entered.version != kMpiModuleVersion)
    return refused(path + " belongs to another build; build Lockstep again");
  const std::unique_ptr<Status> why(entered.error);
  if (entered.lane == nullptr) return refused(why->message());
  return std::unique_ptr<MpiLane>(entered.lane);
}

}  // namespace lockstep
