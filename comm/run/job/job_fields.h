// The fields of wire::JobSpec that hold a value, each with its options in job.proto.
//
// A field of a list of maps is there once, with N for the number of the map: "data.mix.N.path".
//
// Thread-safety: immutable.
#pragma once

#include <google/protobuf/descriptor.h>

#include <functional>
#include <string>
#include <vector>

#include "comm/run/job/job.pb.h"

namespace lockstep::wire {

class KeyOptions;  // comm/run/job/job_options.pb.h

struct JobField {
  std::string key;                                            // "train.global_batch"
  std::vector<const google::protobuf::FieldDescriptor*> way;  // from JobSpec to the field
  const KeyOptions* options = nullptr;                        // never null; lives as long
};

// In the order of job.proto.
const std::vector<JobField>& job_fields();

// The subject of the keys of a group: "train" -> "batch, length, precision, checks". "job" stands
// for the keys without a group.
struct JobSection {
  std::string name;
  std::string about;
};
const std::vector<JobSection>& job_sections();
// The section of a key.
std::string section_of(const std::string& key);

// Calls visit(key, message) for the field in every message of `job` that has it: once, or for each
// map of a list, with the map's number in the key.
void for_each_holder(const JobField& field, const JobSpec& job,
                     const std::function<void(const std::string& key,
                                              const google::protobuf::Message& holder)>& visit);

// The value of a field of `holder`: a number in the shortest form that is exact, a list as
// "[a][b]".
std::string field_text(const google::protobuf::Message& holder,
                       const google::protobuf::FieldDescriptor& field);

}  // namespace lockstep::wire
