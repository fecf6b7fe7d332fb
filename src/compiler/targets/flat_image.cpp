#include "compiler/targets/flat_image.h"

#include <elf.h>

#include <cstring>

#include "support/error.h"

namespace brasa::compiler {
namespace {

template <class T>
const T& at(std::string_view bytes, size_t offset) {
  BRASA_ASSERT(offset + sizeof(T) <= bytes.size(), "object file: it ends too early");
  return *reinterpret_cast<const T*>(bytes.data() + offset);
}

class Linker {
 public:
  explicit Linker(std::string_view object) : object_(object), header_(at<Elf64_Ehdr>(object, 0)) {
    place_.assign(header_.e_shnum, -1);
  }

  runtime::KernelImage link(std::string target) {
    runtime::KernelImage image;
    image.target = std::move(target);
    // Code first; then the constants that it reads.
    for (bool code : {true, false})
      for (int i = 0; i < header_.e_shnum; ++i) {
        const Elf64_Shdr& s = section(i);
        if (!(s.sh_flags & SHF_ALLOC) || static_cast<bool>(s.sh_flags & SHF_EXECINSTR) != code) continue;
        std::string name = section_name(i);
        if (name == ".eh_frame" || s.sh_type == SHT_NOTE || s.sh_size == 0) continue;
        BRASA_ASSERT(!(s.sh_flags & SHF_WRITE), "object file: a kernel has writable data, section ", name);
        BRASA_ASSERT(s.sh_addralign <= 64, "object file: alignment ", s.sh_addralign, " of section ", name);
        size_t align = std::max<size_t>(s.sh_addralign, 1), at = (image.code.size() + align - 1) / align * align;
        image.code.resize(at + s.sh_size, 0);
        if (s.sh_type != SHT_NOBITS) std::memcpy(image.code.data() + at, object_.data() + s.sh_offset, s.sh_size);
        place_[i] = static_cast<int64_t>(at);
      }
    for (int i = 0; i < header_.e_shnum; ++i)
      if (section(i).sh_type == SHT_RELA && place_[section(i).sh_info] >= 0) relocate(section(i), image.code);
    for (int i = 0; i < header_.e_shnum; ++i)
      if (section(i).sh_type == SHT_SYMTAB) find_entries(section(i), image);
    return image;
  }

 private:
  const Elf64_Shdr& section(int i) const { return at<Elf64_Shdr>(object_, header_.e_shoff + i * sizeof(Elf64_Shdr)); }
  std::string string(const Elf64_Shdr& table, size_t offset) const {
    return std::string(object_.data() + table.sh_offset + offset);
  }
  std::string section_name(int i) const { return string(section(header_.e_shstrndx), section(i).sh_name); }

  void relocate(const Elf64_Shdr& s, std::vector<uint8_t>& code) const {
    const Elf64_Shdr& symbols = section(s.sh_link);
    for (size_t o = 0; o < s.sh_size; o += sizeof(Elf64_Rela)) {
      const auto& r = at<Elf64_Rela>(object_, s.sh_offset + o);
      const auto& symbol = at<Elf64_Sym>(object_, symbols.sh_offset + ELF64_R_SYM(r.r_info) * sizeof(Elf64_Sym));
      std::string name = string(section(symbols.sh_link), symbol.st_name);
      BRASA_ASSERT(symbol.st_shndx != SHN_UNDEF, "a kernel refers to '", name,
                   "', which is not part of it: some operation has no instruction on this target");
      BRASA_ASSERT(symbol.st_shndx < header_.e_shnum && place_[symbol.st_shndx] >= 0, "object file: symbol '", name,
                   "' has no place");
      auto type = ELF64_R_TYPE(r.r_info);
      int64_t place = place_[s.sh_info] + static_cast<int64_t>(r.r_offset);
      int64_t value = place_[symbol.st_shndx] + static_cast<int64_t>(symbol.st_value) + r.r_addend - place;
      if (type == R_X86_64_PC32 || type == R_X86_64_PLT32) {
        auto narrow = static_cast<int32_t>(value);
        BRASA_ASSERT(narrow == value, "object file: code of more than 2 GiB");
        std::memcpy(code.data() + place, &narrow, 4);
      } else if (type == R_X86_64_PC64) {
        std::memcpy(code.data() + place, &value, 8);
      } else {
        fail_internal(str("object file: relocation of type ", type, " to '", name, "' depends on the load address"));
      }
    }
  }

  void find_entries(const Elf64_Shdr& s, runtime::KernelImage& image) const {
    for (size_t o = 0; o < s.sh_size; o += sizeof(Elf64_Sym)) {
      const auto& symbol = at<Elf64_Sym>(object_, s.sh_offset + o);
      if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || ELF64_ST_BIND(symbol.st_info) != STB_GLOBAL) continue;
      image.entries.push_back({string(section(s.sh_link), symbol.st_name),
                               static_cast<uint64_t>(place_[symbol.st_shndx]) + symbol.st_value});
    }
  }

  std::string_view object_;
  const Elf64_Ehdr& header_;
  std::vector<int64_t> place_;
};

}  // namespace

runtime::KernelImage link_flat(std::string_view object, std::string target) {
  return Linker(object).link(std::move(target));
}

}  // namespace brasa::compiler
