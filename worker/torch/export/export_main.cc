#include "worker/torch/export/export_main.h"

#include <CLI/CLI.hpp>
#include <string>

#include "comm/environment/standard_streams.h"
#include "comm/run/directory/run_files.h"
#include "worker/torch/export/script_export.h"

namespace lockstep {
namespace {

struct ExportWords {
  std::string run_dir;
  std::string checkpoint;
  std::string file;
};

Status export_file(const ExportWords& words) {
  LOCKSTEP_ASSIGN_OR_RETURN(const wire::JobSpec job, read_job_spec(words.run_dir));
  return export_script(job.model(), words.checkpoint, words.file);
}

}  // namespace

int export_main(int argc, char** argv) {
  ExportWords words;
  CLI::App app("Writes the model's file; started by `lockstep export model`.", "export");
  app.add_option("--run-dir", words.run_dir, "directory of the run")->required();
  app.add_option("--checkpoint", words.checkpoint, "directory of the checkpoint")->required();
  app.add_option("--file", words.file, "file to write")->required();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : exit_code(Status(Code::kUsage, ""));
  }
  const Status done = export_file(words);
  if (!done.is_ok()) print_error("lockstep: %s\n", done.message().c_str());
  return exit_code(done);
}

}  // namespace lockstep
