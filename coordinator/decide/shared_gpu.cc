// NCCL connects no two workers on one GPU, nor on two slices (MIG) of one GPU.
#include "coordinator/decide/decide_internal.h"

namespace lockstep::coordinator {

std::string shared_gpu(const Turn& turn, const wire::Register& newcomer) {
  if (turn.options.job.comm().backend() != "nccl" || newcomer.gpu().pci().empty()) return "";
  for (const auto& [id, member] : turn.state.members) {
    const bool is_its_place =
        member.node == newcomer.node() && member.local_rank == newcomer.local_rank();
    if (!is_alive(member) || is_its_place || member.gpu.pci() != newcomer.gpu().pci() ||
        member.data.host_id() != newcomer.data().host_id())
      continue;
    const std::string& gpu = newcomer.gpu().pci();
    const bool is_sliced = member.gpu.uuid() != newcomer.gpu().uuid();
    return (is_sliced ? " computes on a MIG slice of GPU " + gpu + ", and on another slice of it "
                      : " computes on GPU " + gpu + ", and so ") +
           "does " + describe(turn.state, member) +
           ". NCCL connects whole GPUs, each once: give every worker a GPU of its own, take fewer "
           "workers, or set comm.backend: host";
  }
  return "";
}

}  // namespace lockstep::coordinator
