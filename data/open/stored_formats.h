// The formats of pixels and rows, as the rows in formats.cc use them: how to open each format,
// whether a path has samples for evaluation, and whether its files serve both splits.
//
// Thread-safety: free functions; any thread and process.
#pragma once

#include <memory>
#include <string>

#include "comm/base/status.h"
#include "data/dataset/dataset.h"
#include "data/open/format_row.h"

namespace lockstep::data::stored {

Result<std::unique_ptr<Dataset>> open_idx(const StoredRequest& request);
Result<std::unique_ptr<Dataset>> open_cifar(const StoredRequest& request);
Result<std::unique_ptr<Dataset>> open_npy(const StoredRequest& request);
Result<std::unique_ptr<Dataset>> open_npz(const StoredRequest& request);
Result<std::unique_ptr<Dataset>> open_tensors(const StoredRequest& request);
Result<std::unique_ptr<Dataset>> open_arrow(const StoredRequest& request);
Result<std::unique_ptr<Dataset>> open_csv(const StoredRequest& request);

bool idx_has_eval(const std::string& path);
bool cifar10_has_eval(const std::string& path);
bool cifar100_has_eval(const std::string& path);
bool npy_has_eval(const std::string& path);
bool npz_has_eval(const std::string& path);
bool tensors_have_eval(const std::string& path);

Result<bool> idx_serves_both(const std::string& path);
Result<bool> npy_serves_both(const std::string& path);
Result<bool> npz_serves_both(const std::string& path);
Result<bool> tensors_serve_both(const std::string& path);

// The splits of arrays that a job names.
NamedSplits npy_splits(const std::string& path, const ColumnNames& columns);
NamedSplits npz_splits(const std::string& path, const ColumnNames& columns);
NamedSplits tensor_splits(const std::string& path, const ColumnNames& columns);

// The row that reads the arrays at a path that a job calls npy.
std::string_view arrays_at(const std::string& path);

Result<std::vector<Summed>> idx_sums(const std::string& path, Split split);
Result<std::vector<Summed>> npz_sums(const std::string& path, Split split);

}  // namespace lockstep::data::stored
