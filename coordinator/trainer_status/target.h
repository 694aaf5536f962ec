// The server to which Kubeflow Trainer wants progress reports of a TrainJob. With the feature gate
// TrainJobStatus, Trainer sets these variables in all pods of the job and mounts the two files:
//
//   KUBEFLOW_TRAINER_SERVER_URL      https://SERVICE.NAMESPACE.svc:PORT/apis/trainer.kubeflow.org/
//                                    v1alpha1/namespaces/NAMESPACE/trainjobs/NAME/status
//   KUBEFLOW_TRAINER_SERVER_CA_CERT  a file: the server's certificate authority, in PEM
//   KUBEFLOW_TRAINER_SERVER_TOKEN    a file: the job's token, a JWT that the kubelet replaces
//                                    within the hour
//
// These facts, and the facts of body.h, are from kubeflow/trainer: KEP-2779 (docs/proposals),
// pkg/runtime/framework/plugins/trainjobstatus, pkg/statusserver and pkg/apis/trainer/v1alpha1.
// Kubeflow's SDK and the callback in transformers read these names; drafts of the KEP had others
// (KUBEFLOW_TRAINER_STATUS_*).
//
// Thread-safety: values and free functions.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "comm/base/status.h"
#include "comm/net/address.h"

namespace lockstep::trainer {

inline constexpr size_t kUrlBytes = 2048;
inline constexpr char kUrlVariable[] = "KUBEFLOW_TRAINER_SERVER_URL";
inline constexpr char kAuthorityVariable[] = "KUBEFLOW_TRAINER_SERVER_CA_CERT";
inline constexpr char kTokenVariable[] = "KUBEFLOW_TRAINER_SERVER_TOKEN";

struct Target {
  bool is_tls = true;
  rpc::Address address;  // the host may be a name
  std::string path;      // with the query; printable, without spaces
  std::string authority_path;
  std::string token_path;
};

// Takes https://HOST[:PORT][/PATH], or http:// with a host of this machine, for tests. kConfig,
// with the reason, for anything else.
Result<Target> parse_url(std::string_view url);

// None if the URL is not set: Trainer wants no reports. kConfig if the URL is invalid, or if only
// some of the variables are set. `variable` returns the value of one, or null.
Result<std::optional<Target>> target_of(const std::function<const char*(const char*)>& variable);

}  // namespace lockstep::trainer
