// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/probes/attach/elf_symbols.h"

#include <elf.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

#include "exporter/probes/attach/prologue.h"

namespace rankscope::probes {
namespace {

constexpr size_t kPiece = 256 << 10;
// The largest libraries of today have some hundred sections and ten segments.
constexpr size_t kMaxSections = 4096;
constexpr size_t kMaxSegments = 256;
constexpr size_t kMaxCode = 16;
constexpr size_t kMaxNotes = 4096;
// Of one table: more names than are wanted, since tails are shared.
constexpr size_t kMaxFound = 4096;
// What a possible name takes to be looked up, in bytes that are only passed over; measured.
constexpr uint64_t kWorkOfCandidate = 32;

// What may still be done for one file. Its tables may overlap, be sparse, or be said to be larger
// than any file: only what is read counts.
class Meter {
 public:
  // False: no more of this file.
  bool Take(uint64_t work) {
    spent_ += work;
    return spent_ <= kMostWork;
  }
  bool over() const { return spent_ > kMostWork; }
  uint64_t spent() const { return spent_; }

 private:
  uint64_t spent_ = 0;
};

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

// Returns what that has cost.
uint64_t FindInPiece(std::string_view piece, uint64_t base, const Names& wanted,
                     FoundNames& found) {
  uint64_t candidates = 0;
  for (size_t at = 0; at + 2 < piece.size(); ++at) {
    const char* const c =
        static_cast<const char*>(std::memchr(piece.data() + at, 'c', piece.size() - at - 2));
    if (c == nullptr) break;
    at = static_cast<size_t>(c - piece.data());
    // "cu", or the second letter of "nccl".
    size_t begin = at;
    if (c[1] == 'c' && at > 0 && c[-1] == 'n') {
      begin = at - 1;
    } else if (c[1] != 'u') {
      continue;
    }
    ++candidates;
    const std::string_view rest = piece.substr(begin, kLongestName + 1);
    const size_t end = rest.find('\0');
    if (end == std::string_view::npos) continue;
    const auto name = wanted.find(rest.substr(0, end));
    if (name == wanted.end() || found.size() >= kMaxFound) continue;
    found.emplace(static_cast<uint32_t>(base + begin), *name);
  }
  return piece.size() + candidates * kWorkOfCandidate;
}

bool IsOfCudaOrNccl(std::string_view name) {
  return name.starts_with("cu") || name.starts_with("nccl");
}

// The same for one name of another library.
uint64_t FindOneInPiece(std::string_view piece, uint64_t base, std::string_view name,
                        FoundNames& found) {
  const std::string ended = std::string(name) + '\0';
  uint64_t places = 0;
  for (size_t at = piece.find(ended); at != std::string_view::npos && found.size() < kMaxFound;
       at = piece.find(ended, at + 1), ++places)
    found.emplace(static_cast<uint32_t>(base + at), name);
  return piece.size() + places * kWorkOfCandidate;
}

FoundNames FindNames(const ReadAt& read, const Elf64_Shdr& strings, const Names& wanted,
                     Meter& meter) {
  FoundNames found;
  const bool other = wanted.size() == 1 && !IsOfCudaOrNccl(*wanted.begin());
  // A symbol has 32 bits for its name.
  const uint64_t size = std::min<uint64_t>(strings.sh_size, uint64_t{1} << 32);
  std::vector<std::byte> buffer(std::min<uint64_t>(size, kPiece));
  // Pieces overlap by a name and its end.
  for (uint64_t at = 0; at < size; at += kPiece - kLongestName - 2) {
    const size_t want = std::min<uint64_t>(buffer.size(), size - at);
    const size_t bytes = read(strings.sh_offset + at, std::span(buffer).first(want));
    const std::string_view piece{reinterpret_cast<const char*>(buffer.data()), bytes};
    if (!meter.Take(other ? FindOneInPiece(piece, at, *wanted.begin(), found)
                          : FindInPiece(piece, at, wanted, found)))
      break;
    if (bytes < want || at + want >= size) break;
  }
  return found;
}

class Reader {
 public:
  Reader(const ReadAt& read, const Names& wanted) : read_(read), wanted_(wanted) {}

  Result<ElfFile> Run() {
    const auto header = ReadOne<Elf64_Ehdr>(read_, 0);
    if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0)
      return Error{"not an ELF file"};
    if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != ELFDATA2LSB) {
      return Error{"not a 64-bit little-endian ELF file"};
    }
    if (header->e_shentsize != sizeof(Elf64_Shdr) || header->e_phentsize != sizeof(Elf64_Phdr)) {
      return Error{"no section or program headers"};
    }
    file_.x86_64 = header->e_machine == EM_X86_64;
    segments_ = ReadTable<Elf64_Phdr>(read_, header->e_phoff,
                                      std::min<size_t>(header->e_phnum, kMaxSegments));
    for (const Elf64_Phdr& segment : segments_) {
      const bool code = segment.p_type == PT_LOAD && (segment.p_flags & PF_X) != 0;
      if (code && code_.size() < kMaxCode) code_.push_back(segment);
    }
    const auto sections = ReadTable<Elf64_Shdr>(read_, header->e_shoff,
                                                std::min<size_t>(header->e_shnum, kMaxSections));
    // A file has at most one table of each kind; the names of the first are few, and always read.
    size_t exported = 0;
    for (const uint32_t kind : {SHT_DYNSYM, SHT_SYMTAB}) {
      const auto section = std::find_if(sections.begin(), sections.end(),
                                        [kind](const auto& each) { return each.sh_type == kind; });
      if (section == sections.end() || section->sh_link >= sections.size()) continue;
      if (meter_.over()) break;
      TakeSymbols(*section, FindNames(read_, sections[section->sh_link], wanted_, meter_));
      // What a library exports is enough, where the rest of its symbols is too much.
      file_.cut = too_many_ || (meter_.over() && (kind == SHT_DYNSYM || exported == 0));
      exported = by_offset_.size();
    }
    file_.work = meter_.spent();
    if (file_.cut) return std::move(file_);
    ReadBuildId();
    ReadCode();
    return std::move(file_);
  }

 private:
  void TakeSymbols(const Elf64_Shdr& section, const FoundNames& names) {
    if (names.empty()) return;
    constexpr size_t kEntries = kPiece / sizeof(Elf64_Sym);
    for (uint64_t at = 0; at < section.sh_size; at += kEntries * sizeof(Elf64_Sym)) {
      const size_t entries =
          std::min<uint64_t>(kEntries, (section.sh_size - at) / sizeof(Elf64_Sym));
      const auto symbols = ReadTable<Elf64_Sym>(read_, section.sh_offset + at, entries);
      for (const Elf64_Sym& symbol : symbols) TakeSymbol(symbol, names);
      if (!meter_.Take(symbols.size() * sizeof(Elf64_Sym)) || too_many_) return;
      if (symbols.size() < entries) return;
    }
  }

  void TakeSymbol(const Elf64_Sym& symbol, const FoundNames& names) {
    if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || symbol.st_shndx == SHN_UNDEF) return;
    const auto name = names.find(symbol.st_name);
    if (name == names.end()) return;
    meter_.Take(kWorkOfCandidate);
    const auto offset = FileOffset(symbol.st_value);
    if (!offset || by_offset_.contains(*offset)) return;
    if (by_offset_.size() >= kMostFunctions || ++places_[name->second] > kMostOfOneName) {
      too_many_ = true;  // no compiler makes such a file
      return;
    }
    by_offset_.emplace(*offset, name->second);
  }

  std::optional<uint64_t> FileOffset(uint64_t address) const {
    for (const Elf64_Phdr& segment : code_) {
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
          notes.substr(0, note.n_namesz) == std::string_view("GNU\0", 4)) {
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
  std::vector<Elf64_Phdr> code_;  // what is run of it
  std::map<uint64_t, std::string_view> by_offset_;
  std::unordered_map<std::string_view, int> places_;  // of each name
  bool too_many_ = false;
  Meter meter_;
};

}  // namespace

Result<ElfFile> ReadElf(const ReadAt& read, const Names& wanted) {
  return Reader(read, wanted).Run();
}

ReadAt ReaderOf(int fd) {
  return [fd](uint64_t offset, std::span<std::byte> into) {
    size_t total = 0;
    while (total < into.size()) {
      const ssize_t n =
          pread(fd, into.data() + total, into.size() - total, static_cast<off_t>(offset + total));
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) break;
      total += static_cast<size_t>(n);
    }
    return total;
  };
}

}  // namespace rankscope::probes
