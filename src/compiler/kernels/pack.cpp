#include "compiler/kernels/pack.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "compiler/kernels/codegen_client.h"
#include "compiler/version.h"
#include "support/error.h"
#include "support/lazy.h"
#include "support/mutex.h"
#include "support/output_file.h"
#include "support/settings.h"

namespace brasa::compiler {
namespace {

constexpr char kMagic[8] = {'B', 'R', 'A', 'S', 'A', 'P', '0', '1'};

// After the header come the sizes of the images, then the images, each with its own checksum.
struct Header {
  char magic[8];
  char version[32];
  uint64_t images;
};

class Pack {
 public:
  static Pack& get() {
    static constinit Lazy<Pack> pack;
    return *pack;
  }

  LoadedKernel find(const std::string& key, runtime::Device& device) {
    std::lock_guard lock(mutex_);
    open_once();
    auto it = where_.find(key);
    if (it == where_.end()) return {};
    Image& image = images_[it->second];
    std::shared_ptr<const runtime::Module>& code = image.code[&device];
    if (!code && !image.bad) try {
        code = device.load(runtime::KernelImage::parse(image.bytes));
      } catch (const Error&) {
        image.bad = true;  // for another machine, or damaged: compiled as if it were not there
      }
    if (image.bad) return {};
    return {code, code->kernel(key)};
  }

  PackFacts facts() {
    std::lock_guard lock(mutex_);
    open_once();
    facts_.kernels = where_.size();
    return facts_;
  }

 private:
  struct Image {
    std::string_view bytes;
    std::map<const runtime::Device*, std::shared_ptr<const runtime::Module>> code;
    bool bad = false;
  };

  static std::string place() {
    if (const char* path = environment("BRASA_PACK")) return path;
    std::string folder = own_folder();
    for (const char* where : {"/brasa/pack.bin", "/pack.bin", "/../lib/brasa/pack.bin"})
      if (::access((folder + where).c_str(), R_OK) == 0) return folder + where;
    return "";
  }

  void open_once() {
    if (std::exchange(opened_, true)) return;
    facts_.path = place();
    facts_.why_not = facts_.path.empty() ? std::string("there is none beside the library") : open(facts_.path);
  }

  // What is wrong with it; empty if nothing is. Images before the fault are used.
  std::string open(const std::string& path) {
    int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return str("it cannot be read: ", std::strerror(errno));
    struct stat st;
    void* data = ::fstat(fd, &st) == 0 && st.st_size > 0
                     ? ::mmap(nullptr, static_cast<size_t>(st.st_size), PROT_READ, MAP_PRIVATE, fd, 0)
                     : MAP_FAILED;
    ::close(fd);
    if (data == MAP_FAILED) return "it is empty, or cannot be mapped";
    std::string_view bytes(static_cast<const char*>(data), static_cast<size_t>(st.st_size));
    Header h;
    if (bytes.size() < sizeof h) return "it is torn";
    std::memcpy(&h, bytes.data(), sizeof h);
    if (std::memcmp(h.magic, kMagic, sizeof kMagic) != 0) return "it is no pack";
    h.version[sizeof h.version - 1] = '\0';
    if (std::string_view(h.version) != kCompilerVersion) return str("it belongs to another build, ", h.version);
    bytes.remove_prefix(sizeof h);
    // The index: for each image its size and the number of its kernels, then the kernels' keys.
    for (uint64_t i = 0; i < h.images; ++i) {
      uint64_t sizes[2];
      if (bytes.size() < sizeof sizes) return "it is torn";
      std::memcpy(sizes, bytes.data(), sizeof sizes);
      bytes.remove_prefix(sizeof sizes);
      if (bytes.size() / kKey < sizes[1] || bytes.size() - sizes[1] * kKey < sizes[0]) return "it is torn";
      for (uint64_t k = 0; k < sizes[1]; ++k) where_[std::string(bytes.substr(k * kKey, kKey))] = images_.size();
      bytes.remove_prefix(sizes[1] * kKey);
      images_.push_back({bytes.substr(0, sizes[0]), {}, false});
      bytes.remove_prefix(sizes[0]);
    }
    return "";
  }

 public:
  static constexpr size_t kKey = 33;  // a letter and a hash

 private:
  Mutex mutex_;
  bool opened_ = false;
  PackFacts facts_;
  std::vector<Image> images_;
  std::unordered_map<std::string, size_t> where_;
};

Mutex g_mutex;
bool g_recording = false;
std::vector<runtime::KernelImage>& recorded() {
  static constinit Lazy<std::vector<runtime::KernelImage>> images;
  return *images;
}

}  // namespace

LoadedKernel find_in_pack(const std::string& key, runtime::Device& device) {
  return recording_pack() ? LoadedKernel{} : Pack::get().find(key, device);
}

PackFacts facts_of_pack() { return Pack::get().facts(); }

void record_pack() {
  std::lock_guard lock(g_mutex);
  g_recording = true;
}

bool recording_pack() {
  std::lock_guard lock(g_mutex);
  return g_recording;
}

void add_to_pack(const runtime::KernelImage& image) {
  std::lock_guard lock(g_mutex);
  if (g_recording) recorded().push_back(image);
}

namespace {

std::string header(uint64_t images) {
  Header h{};
  std::memcpy(h.magic, kMagic, sizeof kMagic);
  BRASA_ASSERT(kCompilerVersion.size() < sizeof h.version, kCompilerVersion);
  std::memcpy(h.version, kCompilerVersion.data(), kCompilerVersion.size());
  h.images = images;
  return {reinterpret_cast<const char*>(&h), sizeof h};
}

void write_file(const std::string& path, const std::string& bytes) {
  OutputFile file(path);
  file.write(bytes.data(), bytes.size());
  file.commit();
}

}  // namespace

void write_pack(const std::string& path) {
  std::lock_guard lock(g_mutex);
  std::string out = header(recorded().size());
  for (const runtime::KernelImage& image : recorded()) {
    std::string bytes = image.serialize();
    uint64_t sizes[2] = {bytes.size(), image.entries.size()};
    out.append(reinterpret_cast<const char*>(sizes), sizeof sizes);
    for (const runtime::KernelEntry& e : image.entries) {
      BRASA_ASSERT(e.name.size() == Pack::kKey, e.name);
      out += e.name;
    }
    out += bytes;
  }
  write_file(path, out);
}

void join_packs(const std::vector<std::string>& parts, const std::string& path) {
  uint64_t images = 0;
  std::string bodies;
  for (const std::string& part : parts) {
    std::ifstream file(part, std::ios::binary);
    std::string bytes{std::istreambuf_iterator<char>(file), {}};
    Header h;
    BRASA_CHECK(bytes.size() >= sizeof h, part, ": no kernel pack");
    std::memcpy(&h, bytes.data(), sizeof h);
    BRASA_CHECK(bytes.compare(0, sizeof h, header(h.images)) == 0, part, ": no kernel pack of this version");
    images += h.images;
    bodies.append(bytes, sizeof h);
  }
  write_file(path, header(images) + bodies);
}

}  // namespace brasa::compiler
