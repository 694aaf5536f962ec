#include <filesystem>

#include "comm/base/limits.h"
#include "data/base/thread_team.h"
#include "data/source/url.h"
#include "deploy/cli/base/console.h"
#include "deploy/cli/base/scratch_directory.h"
#include "deploy/cli/data/data_subcommands.h"

namespace lockstep {

wire::DatasetSpec DataArguments::spec() const {
  wire::DatasetSpec spec;
  spec.set_path(source::is_url(path) ? path : std::filesystem::absolute(path).string());
  spec.set_format(format);
  return spec;
}

data::SampleCut DataArguments::used_cut() const {
  data::SampleCut used = cut;
  if (!used.tokenizer.empty()) used.tokenizer = std::filesystem::absolute(used.tokenizer).string();
  if (documents == "pad") used.documents = data::Documents::kPad;
  if (documents == "pack") used.documents = data::Documents::kPack;
  return used;
}

uint32_t DataArguments::used_threads() const {
  return threads > 0 ? threads : data::usable_processors();
}

void add_data_options(CLI::App& command, DataArguments& arguments) {
  command
      .add_option("path", arguments.path,
                  "Directory of the dataset, or a file of tokens, text or tar shards, or a prefix "
                  "of Megatron-LM's files")
      ->required();
  command.add_option("--cache-dir", arguments.cache_dir,
                     "Keep inflated files and indexes here; default: a temporary directory");
  command.add_option("--format", arguments.format, "As data.train.format of a job file");
  command.add_option("--label", arguments.cut.columns.label,
                     "Column of the labels, as data.label of a job file");
  command.add_option("--input", arguments.cut.columns.input,
                     "Column of the images, rows or tokens, as data.input");
  auto* const label = command.get_option("--label");
  command
      .add_option("--inputs", arguments.cut.columns.inputs,
                  "Names with commas between, as data.inputs of a job file")
      ->delimiter(',')
      ->excludes(command.get_option("--input"));
  command
      .add_option("--targets", arguments.cut.columns.targets,
                  "Names with commas between, as data.targets of a job file")
      ->delimiter(',')
      ->excludes(label);
  command.add_option("--weight", arguments.cut.columns.weight, "As data.weight of a job file");
  command.add_option("--block", arguments.cut.block, "Tokens: length of a sequence");
  command.add_option("--tokenizer", arguments.cut.tokenizer,
                     "Text: the vocabulary, as data.tokenizer of a job file");
}

void add_document_options(CLI::App& command, DataArguments& arguments) {
  auto* documents = command.add_option("--documents", arguments.documents,
                                       "Tokens: as data.documents of a job file");
  documents->check(CLI::IsMember({"stream", "pad", "pack"}));
  command
      .add_option("--document-end", arguments.cut.document_end,
                  "Tokens: the token that ends a document, as data.document_end")
      ->needs(documents);
}

void add_threads_option(CLI::App& command, DataArguments& arguments) {
  command.add_option("--threads", arguments.threads, "Threads; default: one a processor")
      ->check(CLI::Range(uint32_t{0}, limits::kDataThreads));
}

int with_cache(const DataArguments& arguments, const std::function<int(const std::string&)>& work) {
  if (!arguments.cache_dir.empty()) return work(arguments.cache_dir);
  const auto scratch = ScratchDirectory::create("lockstep-data-");
  if (scratch.is_ok()) return work((*scratch)->path());
  return report(Status(scratch.status().code(),
                       scratch.status().message() + ", or name a directory with --cache-dir"));
}

}  // namespace lockstep
