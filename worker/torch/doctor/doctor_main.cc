#include "worker/torch/doctor/doctor_main.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "comm/base/file.h"
#include "comm/base/limits.h"
#include "comm/environment/standard_streams.h"
#include "data/view/run_data.h"
#include "worker/engine/gpu_environment.h"
#include "worker/torch/device/open_gpu.h"
#include "worker/torch/doctor/trainer_rungs.h"

namespace lockstep {
namespace {

struct DoctorRequest {
  std::string job_file;  // a JobSpec, resolved
  std::string cache_dir;
  std::string output;
  double seconds = 10;
};

nlohmann::json json_of(const StepTimes& times) {
  return {{"samples", times.samples},
          {"steps_s", times.steps_s},
          {"shortest_s", times.shortest_s},
          {"why_none", times.why_none}};
}

// 89 for "gpu_capability=8.9" among the facts of a GPU. 0: no fact has it.
uint32_t capability_of(const DeviceModule& gpu) {
  for (const std::string& line : gpu.fingerprint()) {
    unsigned major = 0, minor = 0;
    if (std::sscanf(line.c_str(), "gpu_capability=%u.%u", &major, &minor) == 2)
      return 10 * major + minor;
  }
  return 0;
}

// The GPU, where the job wants one, is opened before any other call of LibTorch.
Status measure(const DoctorRequest& request) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string bytes,
                            read_file(request.job_file, limits::kFrameBytes));
  wire::JobSpec job;
  if (!job.ParseFromString(bytes))
    return {Code::kBadData,
            request.job_file + " holds no job; start this program with `lockstep doctor`"};
  std::unique_ptr<DeviceModule> gpu;
  if (job.cluster().device() == "cuda") {
    LOCKSTEP_RETURN_IF_ERROR(prepare_gpu_environment(job));
    LOCKSTEP_ASSIGN_OR_RETURN(gpu, open_gpu(job, device_module_path(), /*local_rank=*/0));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const auto dataset, data::open_train_data(job, request.cache_dir));
  LOCKSTEP_ASSIGN_OR_RETURN(const TrainerTimes times,
                            time_trainer(job, *dataset, request.seconds, gpu.get()));
  nlohmann::json json = {{"once", json_of(times.once)}, {"twice", json_of(times.twice)}};
  if (gpu != nullptr) {
    json["resident"] = json_of(times.resident);
    json["gpu_capability"] = capability_of(*gpu);
  }
  return replace_file(request.output,
                      json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
}

}  // namespace

int doctor_main(int argc, char** argv) {
  DoctorRequest request;
  CLI::App app("Measures steps of a job's model; started by `lockstep doctor`.", "doctor");
  app.add_option("--job", request.job_file, "the resolved job")->required();
  app.add_option("--cache-dir", request.cache_dir, "where indexes and inflated files are")
      ->required();
  app.add_option("--output", request.output, "where the figures go, as JSON")->required();
  app.add_option("--seconds", request.seconds, "how long to measure")->required();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : exit_code(Status(Code::kUsage, ""));
  }
  const Status status = measure(request);
  if (status.is_ok()) return 0;
  print_error("lockstep: %s\n", status.message().c_str());
  return exit_code(status);
}

}  // namespace lockstep
