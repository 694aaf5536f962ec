#include "data/formats/arrays/npy_header.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "comm/base/limits.h"
#include "data/base/file_errors.h"
#include "data/formats/arrays/npy_text.h"

namespace lockstep::data {
namespace {

constexpr uint8_t kNpyMagic[] = {0x93, 'N', 'U', 'M', 'P', 'Y'};
constexpr size_t kPrefixBytes = sizeof kNpyMagic + 2;  // and the version

// Where the text of the header begins and how long it is.
struct TextPlace {
  size_t begin;
  size_t bytes;
};

Result<TextPlace> place_of_text(std::span<const uint8_t> head) {
  if (!is_npy(head)) return bad("is not a NumPy array file: it does not begin with \\x93NUMPY");
  if (head.size() < kPrefixBytes) return bad("is truncated: it ends inside its header");
  const unsigned major = head[sizeof kNpyMagic];
  const unsigned minor = head[sizeof kNpyMagic + 1];
  if (major < 1 || major > 3 || minor != 0)
    return bad("is a NumPy array file of version " + std::to_string(major) + "." +
               std::to_string(minor) + "; Lockstep reads versions 1.0, 2.0 and 3.0");
  const size_t length_bytes = major == 1 ? 2 : 4;
  const size_t begin = kPrefixBytes + length_bytes;
  if (head.size() < begin) return bad("is truncated: it ends inside its header");
  size_t bytes = 0;
  for (size_t i = 0; i < length_bytes; ++i) bytes |= size_t{head[kPrefixBytes + i]} << (8 * i);
  if (begin + bytes > limits::kNpyHeaderBytes)
    return bad("claims a header of " + std::to_string(bytes) + " bytes, more than the limit of " +
               std::to_string(limits::kNpyHeaderBytes) + "; is it a NumPy array file?");
  if (head.size() < begin + bytes) return bad("is truncated: it ends inside its header");
  return TextPlace{begin, bytes};
}

// `fix`: what to type into Python, with `a` for the array.
Status refused(const std::string& what, const std::string& fix) {
  return bad(what + "; write it again: numpy.save(FILE, " + fix + ")");
}

Status check_kind(const std::string& descr, const NpyHeader& header) {
  const char order = descr[0];
  if (header.kind == 'O')
    return refused("holds Python objects, which only Python can read", "a.astype(\"uint8\")");
  if (std::string_view("uifcb").find(header.kind) == std::string_view::npos)
    return refused("holds no numbers (dtype " + descr + ")", "numbers, such as uint8 or uint16");
  const uint32_t bytes = header.element_bytes;
  const bool is_size = bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8 || bytes == 16;
  if (!is_size || (header.is_integer() && bytes > 8))
    return bad("has elements of " + std::to_string(bytes) + " bytes (dtype " + descr +
               "), which NumPy does not have");
  if (bytes == 1 || order == '<') return Status::ok();
  if (order == '>')
    return refused("holds big-endian numbers (dtype " + descr + ")",
                   "a.astype(a.dtype.newbyteorder(\"<\"))");
  return bad("does not say the byte order of its numbers (dtype " + descr + ")");
}

// "<u2": byte order, kind, bytes of an element.
Status read_descr(const std::string& descr, NpyHeader& header) {
  const bool is_order =
      descr.size() >= 2 && std::string_view("<>|=").find(descr[0]) != std::string_view::npos;
  if (!is_order) return bad("has a dtype \"" + descr + "\" that NumPy does not write");
  header.kind = descr[1];
  for (const char c : descr.substr(2)) {
    if (c < '0' || c > '9') break;  // of a date, "<M8[ns]"; the kind is refused below
    header.element_bytes = 10 * header.element_bytes + static_cast<uint32_t>(c - '0');
    if (header.element_bytes > 1'000'000) break;
  }
  LOCKSTEP_RETURN_IF_ERROR(check_kind(descr, header));
  if (descr != descr.substr(0, 2) + std::to_string(header.element_bytes))
    return bad("has a dtype \"" + descr + "\" that NumPy does not write");
  return Status::ok();
}

Status measure(NpyHeader& header) {
  uint64_t bytes = header.element_bytes;
  for (const uint64_t dim : header.dims) {
    if (dim != 0 && bytes > limits::kDatasetBytes / dim)
      return bad("claims the shape " + header.shape_text() + ", more than the limit of " +
                 std::to_string(limits::kDatasetBytes) + " bytes a file");
    bytes *= dim;
  }
  header.content_bytes = bytes;
  return Status::ok();
}

template <typename T>
T element(const uint8_t* content, uint64_t i) {
  T value;
  std::memcpy(&value, content + i * sizeof(T), sizeof(T));
  return value;
}

}  // namespace

std::string NpyHeader::type_text() const {
  const char* name = kind == 'u' ? "uint" : kind == 'i' ? "int" : kind == 'f' ? "float" : "complex";
  return kind == 'b' ? "bool" : name + std::to_string(8 * element_bytes);
}

std::string NpyHeader::shape_text() const {
  std::string text;
  for (const uint64_t dim : dims) text += (text.empty() ? "" : ", ") + std::to_string(dim);
  return "(" + text + (dims.size() == 1 ? ",)" : ")");
}

bool is_npy(std::span<const uint8_t> file) {
  return file.size() >= sizeof kNpyMagic &&
         std::memcmp(file.data(), kNpyMagic, sizeof kNpyMagic) == 0;
}

Result<NpyHeader> parse_npy_header(std::span<const uint8_t> head) {
  LOCKSTEP_ASSIGN_OR_RETURN(const TextPlace place, place_of_text(head));
  const auto* text = reinterpret_cast<const char*>(head.data()) + place.begin;
  LOCKSTEP_ASSIGN_OR_RETURN(const NpyText said, parse_npy_text({text, place.bytes}));
  if (said.is_structured)
    return refused("is a structured array, with several values an element", "a[\"NAME\"]");
  NpyHeader header;
  header.dims = said.shape;
  header.header_bytes = place.begin + place.bytes;
  LOCKSTEP_RETURN_IF_ERROR(read_descr(said.descr, header));
  // With one dimension both orders are the same.
  if (said.is_fortran_order && header.dims.size() > 1)
    return refused("is stored in Fortran order, which scatters each sample over the file",
                   "numpy.ascontiguousarray(a)");
  LOCKSTEP_RETURN_IF_ERROR(measure(header));
  return header;
}

Status check_npy_size(const NpyHeader& header, uint64_t file_bytes) {
  const uint64_t wanted = header.file_bytes();
  if (file_bytes == wanted) return Status::ok();
  return bad((file_bytes < wanted ? "is truncated: it has " : "has ") + std::to_string(file_bytes) +
             " bytes, its header promises " + std::to_string(wanted) + "; copy or write it again");
}

int64_t npy_integer(const NpyHeader& header, const uint8_t* content, uint64_t i) {
  const bool is_signed = header.kind == 'i';
  if (header.element_bytes == 1)
    return is_signed ? element<int8_t>(content, i) : element<uint8_t>(content, i);
  if (header.element_bytes == 2)
    return is_signed ? element<int16_t>(content, i) : element<uint16_t>(content, i);
  if (header.element_bytes == 4)
    return is_signed ? int64_t{element<int32_t>(content, i)} : element<uint32_t>(content, i);
  if (is_signed) return element<int64_t>(content, i);
  const uint64_t value = element<uint64_t>(content, i);
  constexpr uint64_t kMost = std::numeric_limits<int64_t>::max();
  return static_cast<int64_t>(std::min(value, kMost));
}

std::string kind_of_array(std::span<const uint8_t> file) {
  const auto header = parse_npy_header(file);
  return header.is_ok() && header->dims.size() > 1 ? "npy" : "tokens";
}

}  // namespace lockstep::data
