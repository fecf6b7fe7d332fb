#include "compiler/targets/flat_image.h"

#include <elf.h>

#include <cstring>
#include <map>
#include <vector>

#include "support/error.h"

namespace brasa::compiler {
namespace {

template <class T>
const T& at(std::string_view bytes, size_t offset) {
  BRASA_ASSERT(offset + sizeof(T) <= bytes.size(), "object file: it ends too early");
  return *reinterpret_cast<const T*>(bytes.data() + offset);
}

// Some bits of a distance, in a word of code. The last of a relocation's fields has the sign.
struct Field {
  int bytes;         // of the word
  int shift, width;  // of the distance
  int at;            // in the word
  bool last = true;
};

const std::vector<Field>& fields_of(int machine, uint32_t type) {
  using Table = std::map<uint32_t, std::vector<Field>>;
  static const Table x86 = {
      {R_X86_64_PC32, {{4, 0, 32, 0}}}, {R_X86_64_PLT32, {{4, 0, 32, 0}}}, {R_X86_64_PC64, {{8, 0, 64, 0}}}};
  static const Table aarch64 = {
      {R_AARCH64_PREL32, {{4, 0, 32, 0}}},       {R_AARCH64_PREL64, {{8, 0, 64, 0}}},
      {R_AARCH64_LD_PREL_LO19, {{4, 2, 19, 5}}}, {R_AARCH64_ADR_PREL_LO21, {{4, 0, 2, 29, false}, {4, 2, 19, 5}}},
      {R_AARCH64_JUMP26, {{4, 2, 26, 0}}},       {R_AARCH64_CALL26, {{4, 2, 26, 0}}}};
  static const std::vector<Field> none;
  const Table& table = machine == EM_AARCH64 ? aarch64 : x86;
  auto at = table.find(type);
  return at == table.end() ? none : at->second;
}

void put(uint8_t* code, int64_t distance, const Field& f) {
  int top = f.shift + f.width - 1;
  BRASA_ASSERT(!f.last || top >= 63 || distance >> top == 0 || distance >> top == -1,
               "object file: code reaches no further than 2^", top, " bytes");
  uint64_t mask = (f.width == 64 ? ~uint64_t{0} : (uint64_t{1} << f.width) - 1), word = 0;
  std::memcpy(&word, code, static_cast<size_t>(f.bytes));
  word = (word & ~(mask << f.at)) | (static_cast<uint64_t>(distance >> f.shift) & mask) << f.at;
  std::memcpy(code, &word, static_cast<size_t>(f.bytes));
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
      auto type = static_cast<uint32_t>(ELF64_R_TYPE(r.r_info));
      int64_t place = place_[s.sh_info] + static_cast<int64_t>(r.r_offset);
      int64_t value = place_[symbol.st_shndx] + static_cast<int64_t>(symbol.st_value) + r.r_addend - place;
      const std::vector<Field>& fields = fields_of(header_.e_machine, type);
      BRASA_ASSERT(!fields.empty(), "object file: relocation of type ", type, " to '", name,
                   "' depends on the load address");
      for (const Field& f : fields) put(code.data() + place, value, f);
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
