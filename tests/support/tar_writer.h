// Tar archives for tests, also archives that no tool writes.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

namespace lockstep::data {

struct TarFile {
  std::string name;
  std::string content;
  char type = '0';
  std::string link{};
};

// The header in front of a file: 512 bytes, with their checksum.
inline std::string tar_header(const TarFile& file, uint64_t bytes) {
  std::string header(512, '\0');
  header.replace(0, std::min<size_t>(file.name.size(), 100), file.name.substr(0, 100));
  header.replace(100, 7, "0000644");
  char size[16];
  std::snprintf(size, sizeof size, "%011llo", static_cast<unsigned long long>(bytes));
  header.replace(124, 11, size);
  header[156] = file.type;
  header.replace(157, file.link.size(), file.link);
  header.replace(257, 8, std::string("ustar\00000", 8));
  header.replace(148, 8, 8, ' ');
  unsigned sum = 0;
  for (const char c : header) sum += static_cast<unsigned char>(c);
  char text[8];
  std::snprintf(text, sizeof text, "%06o", sum);
  header.replace(148, 7, std::string(text, 7));
  return header;
}

inline std::string tar_entry(const TarFile& file) {
  std::string entry = tar_header(file, file.content.size()) + file.content;
  entry.resize((entry.size() + 511) / 512 * 512);
  return entry;
}

inline const std::string kTarEnd(1024, '\0');

}  // namespace lockstep::data
