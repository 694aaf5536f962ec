// What the data of a path are, going by the names of files, and where these leave it open by sizes
// and first bytes.
//
// A directory is looked at for each in turn, and is the first that fits: IDX files; CIFAR-10 or
// CIFAR-100; arrays of images and labels, *.npy before *.npz before *.safetensors; Megatron-LM's
// pairs of *.bin and *.idx; shards, MDS before tar, TFRecord and Arrow; tokens, *.bin before *.npy
// before *.safetensors; a directory that a CIFAR archive unpacks to; text (*.txt); directories of
// JPEG and PNG files; tables (*.csv, *.tsv), which beside any of the others only describe them;
// else "idx", which says what is missing. A file is `megatron`, `tokens`, `text`, `webdataset`,
// `tfrecord`, `npz`, `safetensors` or `arrow` by its name, or `tokens` or `arrow` where it begins
// as the files of llm.c, NumPy and Arrow do; a *.csv or *.tsv that does not is a table. Of Arrow's
// files the columns of the first decide which of the three formats it is.
//
// Thread-safety: free functions.
#pragma once

#include <string>

#include "comm/base/status.h"

namespace lockstep::data {

// One of kDataFormats but "auto". kUsage where nothing tells, or two do; kNoInput when the path is
// not there.
Result<std::string> detect_format(const std::string& path);

// What `format` stands for at this path: "auto" (or nothing) for what is detected, "npy" and
// "safetensors" for "tokens" where the arrays are tokens, and "arrow" for what its columns are.
// Others stand for themselves, known or not.
Result<std::string> resolve_format(const std::string& path, const std::string& format);

// Whether the names of the files of `path` say that some are for evaluation.
bool has_eval_files(const std::string& path);

}  // namespace lockstep::data
