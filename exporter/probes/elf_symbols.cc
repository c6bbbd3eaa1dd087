// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/probes/elf_symbols.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

#include "exporter/probes/prologue.h"

namespace rankscope::probes {
namespace {

constexpr size_t kPiece = 256 << 10;
// The largest libraries of today have some hundred sections and ten segments.
constexpr size_t kMaxSections = 4096;
constexpr size_t kMaxSegments = 256;
// A library of 2 GB has 64 MB of names; a liar's table would keep the reader busy.
constexpr uint64_t kMaxTable = 512 << 20;
constexpr size_t kMaxNotes = 4096;
// Of one table: more names than are wanted, since tails are shared.
constexpr size_t kMaxFound = 4096;

template <typename T>
std::optional<T> ReadOne(const ReadAt& read, uint64_t offset) {
  T value;
  const auto bytes = std::as_writable_bytes(std::span(&value, 1));
  if (read(offset, bytes) != sizeof value) return std::nullopt;
  return value;
}

template <typename T>
std::vector<T> ReadTable(const ReadAt& read, uint64_t offset, size_t entries) {
  std::vector<T> table(entries);
  const size_t bytes = read(offset, std::as_writable_bytes(std::span(table)));
  table.resize(bytes / sizeof(T));
  return table;
}

// Offset in the table of strings -> name. A string may be the tail of another one ("ncclAllReduce"
// of "pncclAllReduce"): every place where a wanted name ends a string counts.
using FoundNames = std::unordered_map<uint32_t, std::string_view>;

void FindInPiece(std::string_view piece, uint64_t base, const Names& wanted, FoundNames& found) {
  for (size_t at = 0; at + 2 < piece.size(); ++at) {
    const char* const c =
        static_cast<const char*>(std::memchr(piece.data() + at, 'c', piece.size() - at - 2));
    if (c == nullptr) return;
    at = static_cast<size_t>(c - piece.data());
    // "cu", or the second letter of "nccl".
    size_t begin = at;
    if (c[1] == 'c' && at > 0 && c[-1] == 'n') {
      begin = at - 1;
    } else if (c[1] != 'u') {
      continue;
    }
    const std::string_view rest = piece.substr(begin, kLongestName + 1);
    const size_t end = rest.find('\0');
    if (end == std::string_view::npos) continue;
    const auto name = wanted.find(rest.substr(0, end));
    if (name == wanted.end() || found.size() >= kMaxFound) continue;
    found.emplace(static_cast<uint32_t>(base + begin), *name);
  }
}

FoundNames FindNames(const ReadAt& read, const Elf64_Shdr& strings, const Names& wanted) {
  FoundNames found;
  const uint64_t size = std::min<uint64_t>(strings.sh_size, kMaxTable);
  std::vector<std::byte> buffer(std::min<uint64_t>(size, kPiece));
  // Pieces overlap by a name and its end.
  for (uint64_t at = 0; at < size; at += kPiece - kLongestName - 2) {
    const size_t want = std::min<uint64_t>(buffer.size(), size - at);
    const size_t bytes = read(strings.sh_offset + at, std::span(buffer).first(want));
    FindInPiece({reinterpret_cast<const char*>(buffer.data()), bytes}, at, wanted, found);
    if (bytes < want || at + want >= size) break;
  }
  return found;
}

class Reader {
 public:
  Reader(const ReadAt& read, const Names& wanted) : read_(read), wanted_(wanted) {}

  Result<ElfFile> Run() {
    const auto header = ReadOne<Elf64_Ehdr>(read_, 0);
    if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) return Error{"no ELF file"};
    if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != ELFDATA2LSB) {
      return Error{"no 64-bit little-endian ELF file"};
    }
    if (header->e_shentsize != sizeof(Elf64_Shdr) || header->e_phentsize != sizeof(Elf64_Phdr)) {
      return Error{"no section or program headers"};
    }
    file_.x86_64 = header->e_machine == EM_X86_64;
    segments_ = ReadTable<Elf64_Phdr>(read_, header->e_phoff,
                                      std::min<size_t>(header->e_phnum, kMaxSegments));
    const auto sections = ReadTable<Elf64_Shdr>(read_, header->e_shoff,
                                                std::min<size_t>(header->e_shnum, kMaxSections));
    for (const Elf64_Shdr& section : sections) {
      if (section.sh_type != SHT_DYNSYM && section.sh_type != SHT_SYMTAB) continue;
      if (section.sh_link >= sections.size()) continue;
      TakeSymbols(section, FindNames(read_, sections[section.sh_link], wanted_));
    }
    ReadBuildId();
    ReadCode();
    return std::move(file_);
  }

 private:
  void TakeSymbols(const Elf64_Shdr& section, const FoundNames& names) {
    if (names.empty()) return;
    const uint64_t size = std::min<uint64_t>(section.sh_size, kMaxTable);
    constexpr size_t kEntries = kPiece / sizeof(Elf64_Sym);
    for (uint64_t at = 0; at < size; at += kEntries * sizeof(Elf64_Sym)) {
      const size_t entries = std::min<uint64_t>(kEntries, (size - at) / sizeof(Elf64_Sym));
      const auto symbols = ReadTable<Elf64_Sym>(read_, section.sh_offset + at, entries);
      for (const Elf64_Sym& symbol : symbols) {
        if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || symbol.st_shndx == SHN_UNDEF) continue;
        const auto name = names.find(symbol.st_name);
        const auto offset = FileOffset(symbol.st_value);
        if (name != names.end() && offset) by_offset_.emplace(*offset, name->second);
      }
      if (symbols.size() < entries) break;
    }
  }

  std::optional<uint64_t> FileOffset(uint64_t address) const {
    for (const Elf64_Phdr& segment : segments_) {
      if (segment.p_type != PT_LOAD || (segment.p_flags & PF_X) == 0) continue;
      if (address < segment.p_vaddr || address - segment.p_vaddr >= segment.p_filesz) continue;
      return address - segment.p_vaddr + segment.p_offset;
    }
    return std::nullopt;
  }

  void ReadBuildId() {
    for (const Elf64_Phdr& segment : segments_) {
      if (segment.p_type != PT_NOTE || !file_.build_id.empty()) continue;
      std::vector<char> notes(std::min<uint64_t>(segment.p_filesz, kMaxNotes));
      notes.resize(read_(segment.p_offset, std::as_writable_bytes(std::span(notes))));
      FindBuildId({notes.data(), notes.size()});
    }
  }

  void FindBuildId(std::string_view notes) {
    const auto padded = [](uint64_t size) { return (size + 3) & ~uint64_t{3}; };
    while (notes.size() >= sizeof(Elf64_Nhdr)) {
      Elf64_Nhdr note;
      std::memcpy(&note, notes.data(), sizeof note);
      notes.remove_prefix(sizeof note);
      const uint64_t name = padded(note.n_namesz);
      const uint64_t content = padded(note.n_descsz);
      if (name + content > notes.size()) return;
      if (note.n_type == NT_GNU_BUILD_ID &&
          notes.substr(0, note.n_namesz) == std::string_view("GNU", 4)) {
        file_.build_id = notes.substr(name, note.n_descsz);
        return;
      }
      notes.remove_prefix(name + content);
    }
  }

  void ReadCode() {
    for (const auto& [offset, name] : by_offset_) {
      ElfFunction function{std::string(name), offset, std::vector<uint8_t>(kPrologueBytes)};
      function.code.resize(read_(offset, std::as_writable_bytes(std::span(function.code))));
      file_.functions.push_back(std::move(function));
    }
  }

  const ReadAt& read_;
  const Names& wanted_;
  ElfFile file_;
  std::vector<Elf64_Phdr> segments_;
  std::map<uint64_t, std::string_view> by_offset_;
};

}  // namespace

Result<ElfFile> ReadElf(const ReadAt& read, const Names& wanted) {
  return Reader(read, wanted).Run();
}

}  // namespace rankscope::probes
