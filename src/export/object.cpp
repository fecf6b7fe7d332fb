#include "export/object.h"

#include <elf.h>

#include <algorithm>
#include <cstring>

#include "support/error.h"

namespace brasa::exporting {

namespace {

constexpr std::string_view kPrefix = "alone_";

template <class T>
T read(std::string_view bytes, size_t at) {
  BRASA_ASSERT(at <= bytes.size() && sizeof(T) <= bytes.size() - at, "an object file that ends too early");
  T out;
  std::memcpy(&out, bytes.data() + at, sizeof out);
  return out;
}

template <class T>
std::string bytes_of(const std::vector<T>& items) {
  return {reinterpret_cast<const char*>(items.data()), items.size() * sizeof(T)};
}

// A table of names, by their place in it.
struct Names {
  std::string bytes = std::string(1, '\0');
  uint32_t add(const std::string& name) {
    if (name.empty()) return 0;
    auto at = static_cast<uint32_t>(bytes.size());
    bytes.append(name.c_str(), name.size() + 1);
    return at;
  }
};

}  // namespace

std::string add_sections(std::string_view object, const std::vector<AddedSection>& added, const std::string& prefix) {
  auto head = read<Elf64_Ehdr>(object, 0);
  BRASA_ASSERT(std::memcmp(head.e_ident, ELFMAG, SELFMAG) == 0 && head.e_type == ET_REL, "no relocatable object");
  std::vector<Elf64_Shdr> sections;
  for (size_t i = 0; i < head.e_shnum; ++i)
    sections.push_back(read<Elf64_Shdr>(object, head.e_shoff + i * sizeof(Elf64_Shdr)));
  auto bytes = [&](const Elf64_Shdr& s) -> std::string_view {
    return s.sh_type == SHT_NOBITS ? std::string_view() : object.substr(s.sh_offset, s.sh_size);
  };
  auto text = [&](const Elf64_Shdr& table, uint32_t at) { return std::string(bytes(table).substr(at).data()); };

  std::vector<std::string> contents;
  Names names;
  const Elf64_Shdr name_table = sections[head.e_shstrndx];
  size_t symbols_at = 0;
  for (size_t i = 0; i < sections.size(); ++i) {
    Elf64_Shdr& s = sections[i];
    contents.emplace_back(bytes(s));
    s.sh_name = names.add(text(name_table, s.sh_name));
    if (s.sh_type == SHT_SYMTAB) symbols_at = i;
  }
  BRASA_ASSERT(symbols_at, "an object without symbols");

  Names symbol_names;
  const Elf64_Shdr old_names = sections[sections[symbols_at].sh_link];
  std::vector<Elf64_Sym> symbols;
  for (size_t at = 0; at < contents[symbols_at].size(); at += sizeof(Elf64_Sym)) {
    auto symbol = read<Elf64_Sym>(contents[symbols_at], at);
    std::string name = text(old_names, symbol.st_name);
    for (size_t a = 0; a < added.size(); ++a)
      if (name == added[a].symbol) {
        symbol.st_shndx = static_cast<uint16_t>(sections.size() + a);
        symbol.st_other = STV_HIDDEN;
        symbol.st_info = ELF64_ST_INFO(STB_GLOBAL, added[a].executable ? STT_FUNC : STT_OBJECT);
        symbol.st_size = added[a].bytes.size();
      }
    if (name.starts_with(kPrefix)) name = prefix + "_" + name.substr(kPrefix.size());
    symbol.st_name = symbol_names.add(name);
    symbols.push_back(symbol);
  }
  contents[symbols_at] = bytes_of(symbols);
  contents[sections[symbols_at].sh_link] = symbol_names.bytes;

  for (const AddedSection& a : added) {
    Elf64_Shdr s{};
    s.sh_name = names.add(a.name);
    s.sh_type = SHT_PROGBITS;
    s.sh_flags = SHF_ALLOC | (a.executable ? SHF_EXECINSTR : 0);
    s.sh_addralign = 64;
    sections.push_back(s);
    contents.emplace_back(a.bytes);
  }
  contents[head.e_shstrndx] = names.bytes;

  std::string out(sizeof head, '\0');
  for (size_t i = 0; i < sections.size(); ++i) {
    Elf64_Shdr& s = sections[i];
    size_t align = std::max<size_t>(s.sh_addralign, 1);
    out.resize((out.size() + align - 1) / align * align);
    s.sh_offset = i ? out.size() : 0;
    if (s.sh_type != SHT_NOBITS) s.sh_size = contents[i].size();
    out += contents[i];
  }
  out.resize((out.size() + 7) / 8 * 8);
  head.e_shoff = out.size();
  head.e_shnum = static_cast<uint16_t>(sections.size());
  out += bytes_of(sections);
  std::memcpy(out.data(), &head, sizeof head);
  return out;
}

}  // namespace brasa::exporting
