// The subcommands of `lockstep data`, each in a file of its name, and what they share: the options
// that say which data to look at, and the cache directory.
//
// Thread-safety: the main thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "comm/run/job/job.pb.h"
#include "data/dataset/sample_cut.h"
#include "deploy/cli/commands/commands.h"

namespace lockstep {

struct DataArguments {
  std::string path;
  std::string cache_dir;
  std::string format = "auto";
  data::SampleCut cut{.block = 1024, .vocab = 0};  // its tokenizer by any path
  std::string documents = "stream";
  uint32_t threads = 0;  // 0: as many as there are processors

  wire::DatasetSpec spec() const;
  data::SampleCut used_cut() const;  // by absolute paths
  uint32_t used_threads() const;
};

// PATH, --cache-dir, --format, --label, --input, --inputs, --targets, --weight, --block and
// --tokenizer. `arguments` outlives the parser.
void add_data_options(CLI::App& command, DataArguments& arguments);
// --documents and --document-end. `arguments` outlives the parser.
void add_document_options(CLI::App& command, DataArguments& arguments);
void add_threads_option(CLI::App& command, DataArguments& arguments);

// Runs `work` with the directory of --cache-dir, else with one that is removed afterwards.
int with_cache(const DataArguments& arguments,
               const std::function<int(const std::string& cache_dir)>& work);

// `group` is the parser of `lockstep data`.
void add_data_index(CLI::App& group, Commands& commands);
void add_data_inspect(CLI::App& group, Commands& commands);
void add_data_pack(CLI::App& group, Commands& commands);
void add_data_verify(CLI::App& group, Commands& commands);

}  // namespace lockstep
