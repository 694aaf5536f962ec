#include "deploy/cli/job/job_network.h"

#include "comm/net/address.h"
#include "comm/net/network.h"
#include "deploy/cli/job/job_told.h"

namespace lockstep {

Status check_network(const JobValues& values, const wire::JobSpec& job) {
  const auto say = [&](std::string_view key) { return told(values, key, job) + ": "; };
  const auto http = rpc::parse_address(job.metrics().listen());
  if (!http.is_ok())
    return {Code::kUsage,
            say("metrics.listen") + "write host:port, as in 127.0.0.1:9400 (port 0: any free one)"};
  if (job.comm().tls().empty())
    if (const Status closed = rpc::check_loopback(*http); !closed.is_ok())
      return {closed.code(), say("metrics.listen") + closed.message()};
  const auto network = rpc::parse_network(job.comm().network());
  if (!network.is_ok())
    return {network.status().code(), say("comm.network") + network.status().message()};
  if (const std::string& name = job.comm().advertise(); !name.empty()) {
    const auto parsed = rpc::parse_address(name + ":1");
    const bool is_host =
        parsed.is_ok() && parsed->host == name && !rpc::numeric_address(*parsed).is_ok();
    if (!is_host)
      return {Code::kUsage, say("comm.advertise") +
                                "write a host name without a port, as in "
                                "shoes-coordinator-0-0.shoes"};
    if (network->is_loopback())
      return {Code::kUsage,
              say("comm.advertise") +
                  "only this machine reaches the loopback interface; set comm.network too"};
  }
  const bool is_open = job.comm().backend() == "nccl" || job.comm().backend() == "mpi";
  if (is_open && !network->is_loopback() && !job.comm().trusted_network())
    return {Code::kConfig, say("comm.backend") +
                               "it neither authenticates nor encrypts; for comm.network " +
                               network->text +
                               " take host or auto, or set comm.trusted_network=true if everybody "
                               "on that network may read and change the training"};
  if (!job.comm().nccl_hca().empty() && !job.comm().trusted_network())
    return {Code::kConfig,
            say("comm.nccl_hca") +
                "without comm.trusted_network NCCL stays on loopback and uses no adapter; set "
                "comm.trusted_network=true if everybody on the adapters' network may read and "
                "change the training, or leave comm.nccl_hca out"};
  return Status::ok();
}

}  // namespace lockstep
