// Writes named arrays as *.npy, *.npz (stored, as numpy.savez) and *.safetensors.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/files.h"

namespace lockstep::data {

struct TestArray {
  std::string name;
  std::string descr;  // "<f4"
  std::vector<uint64_t> dims;
  std::string content;
};

namespace array_files {

template <typename T>
std::string bytes_of_all(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

inline std::string number(uint64_t value, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i));
  return out;
}

inline std::string list_of(const std::vector<uint64_t>& dims) {
  std::string text;
  for (size_t i = 0; i < dims.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(dims[i]);
  return text;
}

inline std::string npy(const TestArray& array) {
  std::string text = "{'descr': '" + array.descr + "', 'fortran_order': False, 'shape': (" +
                     list_of(array.dims) + (array.dims.size() == 1 ? ",)" : ")") + ", }";
  while ((10 + text.size() + 1) % 64 != 0) text += ' ';
  text += '\n';
  return std::string("\x93NUMPY\x01\x00", 8) + number(text.size(), 2) + text + array.content;
}

inline std::string npz(const std::vector<TestArray>& arrays) {
  std::string out;
  std::string list;
  for (const TestArray& array : arrays) {
    const std::string name = array.name + ".npy";
    const std::string file = npy(array);
    const auto crc =
        crc32(0, reinterpret_cast<const Bytef*>(file.data()), static_cast<uInt>(file.size()));
    const std::string sizes =
        number(crc, 4) + number(file.size(), 4) + number(file.size(), 4) + number(name.size(), 2);
    const std::string begin = number(20, 2) + number(0, 2) + number(0, 2) + number(0, 4) + sizes;
    list += "PK\x01\x02" + number(20, 2) + begin + number(0, 2) + number(0, 2) + number(0, 2) +
            number(0, 2) + number(0, 4) + number(out.size(), 4) + name;
    out += "PK\x03\x04" + begin + number(0, 2) + name + file;
  }
  const uint64_t at = out.size();
  return out + list + "PK\x05\x06" + number(0, 4) + number(arrays.size(), 2) +
         number(arrays.size(), 2) + number(list.size(), 4) + number(at, 4) + number(0, 2);
}

inline std::string type_of_descr(const std::string& descr) {
  const std::string kind = descr.substr(1, 1);
  const int bits = 8 * std::stoi(descr.substr(2));
  if (kind == "b") return "BOOL";
  return (kind == "u" ? "U" : kind == "i" ? "I" : "F") + std::to_string(bits);
}

inline std::string safetensors(const std::vector<TestArray>& arrays) {
  std::string header = "{";
  std::string content;
  for (const TestArray& array : arrays) {
    const std::string begin = std::to_string(content.size());
    content += array.content;
    header += (header.size() == 1 ? "\"" : ",\"") + array.name + "\":{\"dtype\":\"" +
              type_of_descr(array.descr) + "\",\"shape\":[" + list_of(array.dims) +
              "],\"data_offsets\":[" + begin + "," + std::to_string(content.size()) + "]}";
  }
  header += "}";
  while (header.size() % 8 != 0) header += ' ';
  return number(header.size(), 8) + header + content;
}

}  // namespace array_files

// `ending`: ".npy", ".npz" or ".safetensors". For .npy, `stem`, if any, is the name before an
// underscore.
inline void write_arrays(const std::string& directory, const std::string& stem,
                         const std::string& ending, const std::vector<TestArray>& arrays) {
  std::filesystem::create_directories(directory);
  const std::string file = stem.empty() ? "x" : stem;
  if (ending == ".npz")
    write_file(directory + "/" + file + ending, array_files::npz(arrays));
  else if (ending == ".safetensors")
    write_file(directory + "/" + file + ending, array_files::safetensors(arrays));
  else
    for (const TestArray& array : arrays)
      write_file(directory + "/" + stem + (stem.empty() ? "" : "_") + array.name + ending,
                 array_files::npy(array));
}

template <typename T>
TestArray test_array(std::string name, std::string descr, std::vector<uint64_t> dims,
                     const std::vector<T>& values) {
  return {std::move(name), std::move(descr), std::move(dims), array_files::bytes_of_all(values)};
}

}  // namespace lockstep::data
