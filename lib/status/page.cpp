#include "page.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <exception>
#include <fstream>
#include <map>
#include <new>
#include <span>
#include <utility>

#include "../base/folder.hpp"
#include "baton/collective.hpp"
#include "baton/types.hpp"

namespace baton::status {
namespace {

/// Whether the processor's ticks are even and equal on all cores: the system's own clock reads
/// them.
bool ticks_are_even() {
#ifdef __x86_64__
  static const bool even = [] {
    std::string source;
    std::getline(std::ifstream("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
                 source);
    return source == "tsc" || source == "kvm-clock" || source == "hyperv_clocksource_tsc_page";
  }();
  return even;
#else
  return false;
#endif
}

/// Converts a page's ticks to the machine's monotonic ns.
class Conversion {
 public:
  Conversion(const Layout& layout, std::int64_t now_ns)
      : ticks_(layout.anchor_ticks), ns_(std::clamp(layout.anchor_ns, -most_ns, most_ns)) {
    const auto passed = static_cast<double>(ticks_now(layout.tsc != 0) - ticks_);
    if (passed > 0) slope_ = static_cast<double>(now_ns - ns_) / passed;
  }
  std::int64_t operator()(std::uint64_t ticks) const {
    constexpr auto most = static_cast<double>(most_ns);
    const double passed = static_cast<double>(static_cast<std::int64_t>(ticks - ticks_)) * slope_;
    return ns_ + static_cast<std::int64_t>(std::clamp(passed, -most, most));
  }

 private:
  std::uint64_t ticks_;
  std::int64_t ns_;
  double slope_ = 1;
};

void copy_text(std::span<char> to, std::string_view from) {
  const std::size_t length = std::min(from.size(), to.size() - 1);
  std::memcpy(to.data(), from.data(), length);
  to[length] = '\0';
}

constexpr std::string_view prefix = "baton-", suffix_of_doors = ".doors";

std::string doors_of(const std::string& page) { return page + std::string(suffix_of_doors); }

void remove_files(const std::string& page) {
  unlink(page.c_str());
  unlink(doors_of(page).c_str());
}

}  // namespace

Call call_of(const std::array<std::uint64_t, sizeof(Call) / 8>& words) {
  auto call = std::bit_cast<Call>(words);
  const bool known = call.kind <= Call::Kind::internal &&
                     call.collective <= static_cast<std::uint8_t>(Collective::program) &&
                     call.type <= static_cast<std::uint8_t>(Datatype::user) &&
                     call.op <= static_cast<std::uint8_t>(OpKind::user);
  if (!known) return {};
  call.text.back() = '\0';
  return call;
}

std::string name_of(const Call& call) {
  switch (call.kind) {
    case Call::Kind::send:
      return fmt::format("send to rank {}", call.root);
    case Call::Kind::recv:
      return fmt::format("recv from rank {}", call.root);
    case Call::Kind::internal:
      return std::string(call.note());
    case Call::Kind::collective:
      return std::string(name(static_cast<Collective>(call.collective)));
    case Call::Kind::none:
      break;
  }
  return "an operation";
}

std::string describe(const Call& call) {
  std::string text = name_of(call);
  if (call.kind == Call::Kind::internal || call.kind == Call::Kind::none) return text;
  const auto collective = static_cast<Collective>(call.collective);
  const bool message = call.kind != Call::Kind::collective;
  if (message || collective != Collective::barrier) {
    text += call.count >= 0 ? fmt::format(" of {}", call.count) : std::string(" of uneven counts");
    text += fmt::format(" {}", name(static_cast<Datatype>(call.type)));
  }
  if (!message && reducing(collective))
    text += fmt::format(", {}", name(static_cast<OpKind>(call.op)));
  if (!message && rooted(collective)) text += fmt::format(", root {}", call.root);
  if (!call.note().empty()) text += fmt::format(" ({})", call.note());
  return text;
}

std::uint64_t Standing::pending() const {
  std::uint64_t least = 0, last = first;
  for (const Operation& operation : operations) {
    if (operation.number == 0) continue;
    last = std::max(last, operation.number);
    if (operation.under_way() && (least == 0 || operation.number < least)) least = operation.number;
  }
  return least != 0 ? least : last + 1;
}

const Operation* Standing::collective(std::uint64_t number) const {
  const auto found = std::ranges::find(operations, number, &Operation::number);
  return number == 0 || found == operations.end() ? nullptr : &*found;
}

const Operation* Standing::last_complete() const {
  const Operation* last = nullptr;
  for (const Operation& operation : operations)
    if (!operation.under_way() && (!last || operation.end_ns > last->end_ns)) last = &operation;
  return last;
}

const Operation* Standing::message_under_way() const {
  for (const Operation& operation : operations)
    if (operation.number == 0 && operation.under_way()) return &operation;
  return nullptr;
}

std::string folder() { return "/dev/shm"; }

std::string file_of(const ProcessId& process, std::uint64_t communicator, int rank) {
  return fmt::format("{}/{}{}-{:016x}-{}", folder(), prefix, process.pid, communicator, rank);
}

Page::Page(std::uint64_t communicator, int rank, int size, std::uint64_t first,
           std::string_view label)
    : tsc_(ticks_are_even()) {
  const ProcessId process = own_process();
  const std::string file = file_of(process, communicator, rank);
  void* memory = MAP_FAILED;
  const int descriptor = open(file.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (descriptor >= 0) {
    // Memory that there is not would be found out by a signal at the first write.
    int refused = 0;
    while ((refused = posix_fallocate(descriptor, 0, sizeof(Layout))) == EINTR) continue;
    if (refused == 0)
      memory = mmap(nullptr, sizeof(Layout), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    close(descriptor);
    if (memory == MAP_FAILED) {
      unlink(file.c_str());
    } else {
      file_ = file;
    }
  }
  if (memory == MAP_FAILED)
    memory =
        mmap(nullptr, sizeof(Layout), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  layout_ = new (memory) Layout;  // leaves the zeros
  layout_->communicator = communicator;
  layout_->rank = rank;
  layout_->size = size;
  layout_->process = process;
  layout_->first = first;
  layout_->tsc = tsc_ ? 1 : 0;
  layout_->anchor_ns = tracing::now();
  layout_->anchor_ticks = ticks_now(tsc_);
  layout_->label.write(label);
  copy_text(layout_->program, program_invocation_short_name);
  layout_->thread.store(own_thread(), std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  std::memcpy(layout_->magic, Layout::expected, sizeof layout_->magic);
}

Page::~Page() {
  if (!file_.empty() && layout_->process.pid == getpid()) {  // not in a fork
    unlink(file_.c_str());
    hand_doors_on();
  }
  munmap(layout_, sizeof(Layout));
}

// A page is removed before its doors. So doors that come to a page which is still there go with it.
void Page::hand_doors_on() noexcept {
  std::string doors = doors_of(file_);
  if (!status::exists(doors)) return;
  try {
    const std::string infix = fmt::format("-{:016x}-", layout_->communicator);
    for (const std::string& other : all_files()) {
      if (other.find(infix) == std::string::npos) continue;
      if (rename(doors.c_str(), doors_of(other).c_str()) != 0) break;
      doors = doors_of(other);
      if (status::exists(other)) return;
    }
  } catch (const std::exception&) {  // no memory
  }
  unlink(doors.c_str());
}

void Page::put_doors(std::span<const std::byte> doors) noexcept try {
  if (file_.empty()) return;
  const std::string file = doors_of(file_);
  unlink(file.c_str());
  const int descriptor = open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (descriptor < 0) return;
  const ssize_t written = write(descriptor, doors.data(), doors.size());
  close(descriptor);
  if (written != static_cast<ssize_t>(doors.size())) unlink(file.c_str());
} catch (const std::bad_alloc&) {  // others see the ranks of this machine only
}

std::vector<std::byte> doors_beside(const std::string& page) {
  const int descriptor = open(doors_of(page).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (descriptor < 0) return {};
  struct stat status {};
  constexpr off_t most = 1 << 28;
  std::vector<std::byte> bytes;
  if (fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == geteuid() &&
      status.st_size <= most) {
    bytes.resize(static_cast<std::size_t>(status.st_size));
    if (::read(descriptor, bytes.data(), bytes.size()) != status.st_size) bytes.clear();
  }
  close(descriptor);
  return bytes;
}

PeerPage::PeerPage(const std::string& file) {
  const int descriptor = open(file.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (descriptor < 0) return;
  struct stat status {};
  void* memory = MAP_FAILED;
  if (fstat(descriptor, &status) == 0 && status.st_size == sizeof(Layout) &&
      status.st_uid == geteuid())
    memory = mmap(nullptr, sizeof(Layout), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  close(descriptor);
  if (memory == MAP_FAILED) return;
  if (std::memcmp(memory, Layout::expected, sizeof Layout::expected) != 0) {
    munmap(memory, sizeof(Layout));
    return;
  }
  layout_ = static_cast<Layout*>(memory);
}

PeerPage::PeerPage(PeerPage&& other) noexcept : layout_(std::exchange(other.layout_, nullptr)) {}
PeerPage::~PeerPage() {
  if (layout_) munmap(layout_, sizeof(Layout));
}

namespace {

/// The messages for which a rank is inside a blocking call of its transport.
void read_blocking_call(const Layout& page, Standing& s) {
  const auto add = [&](const std::atomic<std::uint64_t>& word, const char* kind) {
    const auto message = MessageStep::of(word.load(std::memory_order_relaxed));
    if (message.peer < 0) return;
    if (s.blocker < 0) s.blocker = message.peer;
    s.waits += fmt::format("{}rank {} (step {}: {})", s.waits.empty() ? "waits for " : ", ",
                           message.peer, message.step, kind);
  };
  add(page.receiving, "recv");
  add(page.sending, "send");
}

}  // namespace

bool waits(const Layout& page) {
  return page.blocker.load(std::memory_order_relaxed) > 0 ||
         (page.receiving.load(std::memory_order_relaxed) |
          page.sending.load(std::memory_order_relaxed)) != 0;
}

Standing read(const Layout& page) {
  Standing s;
  s.communicator = page.communicator;
  s.first = page.first;
  s.rank = page.rank;
  s.size = page.size;
  s.label = page.label.read();
  s.program.assign(page.program, strnlen(page.program, sizeof page.program));
  s.process = page.process;
  s.thread = page.thread.load(std::memory_order_relaxed);
  s.blocker = std::max(page.blocker.load(std::memory_order_relaxed), 0) - 1;
  if (s.blocker >= 0)
    s.waits = page.waits.read();
  else
    read_blocking_call(page, s);
  s.failure = page.failure.read();
  s.verdict_number = page.verdict_number.load(std::memory_order_acquire);
  if (s.verdict_number != 0) s.verdict = page.verdict.read();
  s.verdict_code = page.verdict_code.load(std::memory_order_relaxed);
  s.shrinks = page.shrinks.load(std::memory_order_relaxed) != 0;
  s.failed = page.failed.load(std::memory_order_relaxed) != 0;
  s.unmade = page.unmade.load(std::memory_order_acquire);
  if (s.unmade != 0) {
    s.unmade_code = page.unmade_code.load(std::memory_order_relaxed);
    s.unmade_why = page.unmade_why.read();
  }
  s.read_ns = tracing::now();
  const Conversion ns(page, s.read_ns);
  const std::uint64_t begun = page.begun.load(std::memory_order_acquire);
  for (std::uint64_t place = begun > remembered ? begun - remembered : 0; place < begun; ++place) {
    const Layout::Entry& entry = page.entries[place % remembered];
    Operation operation{};
    operation.number = entry.number.load(std::memory_order_relaxed);
    operation.begin_ns = ns(entry.begin.load(std::memory_order_relaxed));
    const std::uint64_t end = entry.end.load(std::memory_order_acquire);
    operation.end_ns = end == 0 ? 0 : ns(end);
    std::array<std::uint64_t, sizeof(Call) / 8> words;
    for (std::size_t i = 0; i < words.size(); ++i)
      words[i] = entry.call[i].load(std::memory_order_relaxed);
    operation.call = call_of(words);
    s.operations.push_back(operation);
  }
  // The oldest may have been overwritten meanwhile.
  const std::uint64_t now = page.begun.load(std::memory_order_acquire);
  const auto stale = std::min<std::uint64_t>(now - begun, s.operations.size());
  s.operations.erase(s.operations.begin(),
                     s.operations.begin() + static_cast<std::ptrdiff_t>(stale));
  return s;
}

bool exists(const std::string& file) { return access(file.c_str(), F_OK) == 0 || errno != ENOENT; }

std::vector<std::string> all_files() {
  std::vector<std::string> files;
  const std::optional<std::vector<std::string>> names = base::names_in(folder());
  for (const std::string& name : names.value_or(std::vector<std::string>()))
    if (name.starts_with(prefix) && !name.ends_with(suffix_of_doors))
      files.push_back(fmt::format("{}/{}", folder(), name));
  std::ranges::sort(files);
  return files;
}

void remove_abandoned(const std::vector<std::string>& files) {
  const auto lives = [](const PeerPage& page) {
    return condition_of(page.layout().process, 0).life != Life::ended;
  };
  std::map<std::uint64_t, std::vector<std::string>> dead;
  for (const std::string& file : files)
    if (const PeerPage page(file); page.valid() && !lives(page))
      dead[page.layout().communicator].push_back(file);
  if (dead.empty()) return;
  // Ranks that live may have made their pages after `files` were listed.
  for (const std::string& file : all_files())
    if (const PeerPage page(file); page.valid() && lives(page))
      dead.erase(page.layout().communicator);
  for (const auto& [communicator, abandoned] : dead)
    for (const std::string& file : abandoned) remove_files(file);
}

}  // namespace baton::status
