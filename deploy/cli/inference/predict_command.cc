#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>
#include <vector>

#include "comm/base/file.h"
#include "comm/base/limits.h"
#include "comm/base/text/shell_word.h"
#include "comm/environment/standard_streams.h"
#include "comm/run/directory/layout.h"
#include "deploy/cli/base/console.h"
#include "deploy/cli/base/scratch_directory.h"
#include "deploy/cli/commands/commands.h"
#include "deploy/cli/inference/new_file.h"
#include "deploy/cli/inference/part_processes.h"
#include "deploy/cli/inference/trained_place.h"
#include "deploy/cli/inference/used_data.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

struct PredictArguments {
  TrainedPlace model;
  UsedDataWords data;
  uint32_t top = 0;
  uint32_t workers = 1;
  bool logits = false;
  std::string out;
};

Result<std::string> kind_of(const std::string& out) {
  if (out.empty()) return std::string("csv");
  for (const char* kind : {"csv", "jsonl", "npy"})
    if (out.ends_with(std::string(".") + kind)) return std::string(kind);
  return Status(Code::kUsage, "--out names " + shell_word(out) +
                                  "; its ending says the format: .csv, .jsonl or .npy");
}

Status check_out(const std::string& out) {
  std::error_code error;
  if (out.empty()) return Status::ok();
  if (fs::exists(out, error))
    return {Code::kUsage, shell_word(out) + " is there already; name another file"};
  const fs::path parent = fs::absolute(out).parent_path();
  if (fs::is_directory(parent, error) && ::access(parent.c_str(), W_OK) == 0) return Status::ok();
  if (fs::is_directory(parent, error))
    return {Code::kInternal, "cannot write to " + shell_word(parent.string()) + ": " +
                                 errno_text(errno) + "; name another directory"};
  return {Code::kNoInput,
          "there is no directory " + shell_word(parent.string()) + " for the predictions; make it"};
}

struct Closer {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, Closer>;

Status append_file(const std::string& from, std::FILE* to, const std::string& name) {
  const File part(std::fopen(from.c_str(), "rb"));
  if (part == nullptr)
    return {Code::kInternal, "cannot read " + from + ": " + errno_text(errno) +
                                 "; predict again, with another TMPDIR"};
  std::array<char, 1 << 16> bytes;
  while (const size_t count = std::fread(bytes.data(), 1, bytes.size(), part.get()))
    if (std::fwrite(bytes.data(), 1, count, to) != count)
      return {Code::kInternal, "cannot write " + name + ": " + errno_text(errno) +
                                   "; make room, or name another file by --out"};
  if (std::ferror(part.get()) == 0) return Status::ok();
  return {Code::kInternal, "cannot read " + from + ": " + errno_text(errno) +
                               "; predict again, with another TMPDIR"};
}

Status join_to_stdout(const PartProcesses& task) {
  for (uint32_t part = 0; part < task.parts; ++part)
    LOCKSTEP_RETURN_IF_ERROR(append_file(task.file(part), stdout, "stdout"));
  return finish_stdout();
}

// The file appears whole.
Status join_to_file(const PartProcesses& task, const std::string& out) {
  const std::string half = out + std::string(rundir::kTemporaryMark) + std::to_string(::getpid());
  Status joined;
  {
    const File file(std::fopen(half.c_str(), "wbx"));
    if (file == nullptr)
      return {Code::kInternal, "cannot write " + half + ": " + errno_text(errno) +
                                   "; make room, or name another file by --out"};
    for (uint32_t part = 0; part < task.parts && joined.is_ok(); ++part)
      joined = append_file(task.file(part), file.get(), half);
    if (joined.is_ok() && (std::fflush(file.get()) != 0 || ::fsync(::fileno(file.get())) != 0))
      joined = {Code::kInternal, "cannot write " + half + ": " + errno_text(errno) +
                                     "; make room, or name another file by --out"};
  }
  std::error_code error;
  if (joined.is_ok()) joined = publish_new_file(half, out);
  if (!joined.is_ok()) fs::remove(half, error);
  return joined;
}

// Pictures that could not be read (lockstep-worker predict writes a list for each part). The others
// are written.
Status told_unread(const PartProcesses& task) {
  constexpr size_t kTold = 10;
  std::string names;
  size_t count = 0;
  for (uint32_t part = 0; part < task.parts; ++part) {
    const auto text = read_file(task.file(part) + ".unread", limits::kModelFileBytes);
    if (!text.is_ok()) continue;
    const auto list = nlohmann::json::parse(*text, nullptr, /*allow_exceptions=*/false);
    for (const auto& one : list.is_array() ? list : nlohmann::json::array()) {
      if (++count > kTold) continue;
      names += (count > 1 ? "; " : " ") + shell_word(one.value("path", "")) + ": " +
               one.value("why", "");
    }
  }
  if (count == 0) return Status::ok();
  if (count > kTold) names += "; and " + std::to_string(count - kTold) + " more";
  return {Code::kBadData, std::to_string(count) +
                              " pictures cannot be read; all others are written. Put whole files "
                              "in their places, and predict these again:" +
                              names};
}

Status predict_data(const PredictArguments& arguments) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string kind, kind_of(arguments.out));
  LOCKSTEP_RETURN_IF_ERROR(check_out(arguments.out));
  LOCKSTEP_ASSIGN_OR_RETURN(const auto scratch, ScratchDirectory::create("lockstep-predict-"));
  PartProcesses task;
  task.what = "predicting";
  task.parts = arguments.workers;
  task.directory = scratch->path();
  task.words = {"predict",   "--kind",      kind, "--top", std::to_string(arguments.top),
                "--scratch", task.directory};
  if (arguments.logits) task.words.emplace_back("--logits");
  const auto data = worker_options(arguments.data);
  task.words.insert(task.words.end(), data.begin(), data.end());
  LOCKSTEP_RETURN_IF_ERROR(run_parts_with(arguments.model, task));
  LOCKSTEP_RETURN_IF_ERROR(arguments.out.empty() ? join_to_stdout(task)
                                                 : join_to_file(task, arguments.out));
  return told_unread(task);
}

constexpr char kPredictNotes[] =
    "Prints a row a sample: its number, its name and the likeliest classes with their\n"
    "probabilities; of a model that learnt numbers (as with train.loss mse) the number. The\n"
    "ending of --out says the format: .csv, .jsonl, or .npy with the probabilities of all "
    "classes.\n"
    "A model that gives a class for each pixel writes .npy. Images are transformed as in the "
    "run's\n"
    "evaluation. DATA may be a directory of images without classes.\n\n"
    "Examples:\n"
    "  lockstep predict runs/shoes new-photos\n"
    "  lockstep predict shoes-model new-photos --top 1 --out new-photos.csv --workers 4\n"
    "  lockstep predict runs/shoes /data/test --out probabilities.npy\n"
    "\n"
    "Exit codes: 0 written, 64 wrong option or DATA, 65 the model is damaged or DATA does not fit "
    "it,\n"
    "66 nothing there or no checkpoint yet, 70 writing failed.";

}  // namespace

void add_predict_command(CLI::App& app, Commands& commands) {
  auto* command = app.add_subcommand("predict", "What a model says of images or rows");
  const auto arguments = std::make_shared<PredictArguments>();
  add_trained_place(*command, arguments->model);
  add_used_data(*command, arguments->data, /*is_needed=*/true);
  command->add_flag("--unlabelled", arguments->data.is_unlabelled,
                    "All images below DATA, whatever its directories mean");
  command->add_option("--top", arguments->top, "Classes of a row (default: 5, or all)")
      ->check(CLI::PositiveNumber);
  command->add_option("--out", arguments->out,
                      "FILE.csv, FILE.jsonl or FILE.npy (default: stdout)");
  command->add_flag("--logits", arguments->logits, "What the model gives, as it is; to FILE.npy");
  add_part_count(*command, arguments->workers);
  command->footer(kPredictNotes);
  commands[command] = [arguments] { return report(predict_data(*arguments)); };
}

}  // namespace lockstep
