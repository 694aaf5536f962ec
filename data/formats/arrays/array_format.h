// Functions that the rows of the formats of arrays share.
//
// Thread-safety: free functions; any thread and process.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "comm/base/status.h"
#include "data/dataset/format_row.h"
#include "data/formats/arrays/named_arrays.h"

namespace lockstep::data {

// Whether the path has a pair for evaluation. Ambiguous arrays count as present; opening them
// reports the ambiguity.
template <auto find>
bool pair_has_eval(const std::string& path) {
  const auto pair = find(path, Split::kEval);
  return pair.is_ok() ? !pair->serves_both : pair.status().code() != Code::kNoInput;
}

template <auto find>
Result<bool> pair_serves_both(const std::string& path) {
  const auto pair = find(path, Split::kTrain);
  if (!pair.is_ok()) return pair.status();
  return pair->serves_both;
}

// The checksums of the two files or entries of a pair.
template <auto find, auto add>
Result<std::vector<Summed>> pair_sums(const std::string& path, Split split) {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto pair, find(path, split));
  std::vector<Summed> found;
  add(pair.images, found);
  add(pair.labels, found);
  return found;
}

template <ListArraysFn list>
NamedSplits named_splits_of(const std::string& path, const ColumnNames& columns) {
  return splits_of_named(list, path, columns);
}

// Whether arrays that the job names are in the directory, or in a directory of its splits.
template <ListArraysFn list>
bool has_named(const Listing& directory) {
  return directory.columns.has_fields() &&
         splits_of_named(list, directory.path, directory.columns).has_any;
}

// `format`: what the data set reports.
template <ListArraysFn list>
Result<std::unique_ptr<Dataset>> open_named(const StoredRequest& request,
                                            const std::string& format) {
  return open_named_arrays(list, {request.path, request.split, format, request.format,
                                  request.columns, request.cache_dir, request.progress});
}

}  // namespace lockstep::data
