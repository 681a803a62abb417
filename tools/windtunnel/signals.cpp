#include "windtunnel/signals.hpp"

#include <signal.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>

#include "core/staged_files.hpp"
#include "core/work_note.hpp"

namespace windtunnel {
namespace {

constexpr std::int64_t longest_silence = 9;  ///< seconds

std::atomic<std::int64_t> start = 0, last_message = 0;  ///< seconds of the clock below

std::int64_t seconds_now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec;
}

/// A line made in the handler of a signal, where nothing may be allocated.
class HandlerLine {
 public:
  HandlerLine& operator<<(const char* text) {
    while (*text != '\0' && size_ < text_.size()) text_[size_++] = *text++;
    return *this;
  }
  HandlerLine& operator<<(std::uint64_t number) {
    constexpr std::uint64_t base = 10;
    std::array<char, 21> digits{};
    std::size_t first = digits.size() - 1;
    do digits[--first] = static_cast<char>('0' + number % base);
    while ((number /= base) != 0);
    return *this << &digits[first];
  }
  void write() const {
    if (::write(STDERR_FILENO, text_.data(), size_) < 0) return;  // nobody left to tell
  }

 private:
  std::array<char, 256> text_{};
  std::size_t size_ = 0;
};

void tell_what_is_done(std::int64_t now) {
  const char* const doing = work_note.doing;
  const char* const unit = work_note.unit;
  HandlerLine line;
  line << "windtunnel: still " << (doing == nullptr ? "working" : doing) << " after "
       << static_cast<std::uint64_t>(now - start) << " s";
  if (doing != nullptr && unit != nullptr) line << " (" << work_note.done << " " << unit << ")";
  line << "\n";
  line.write();
}

void on_second(int) {
  const int before = errno;
  const std::int64_t now = seconds_now();
  if (now - last_message >= longest_silence) {
    last_message = now;
    tell_what_is_done(now);
  }
  errno = before;
}

void on_end(int signal) {
  remove_staged_files();
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

}  // namespace

void clean_up_on_signals() {
  // Every signal that ends a process and comes from elsewhere: terminals, batch systems, limits.
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGXCPU, SIGUSR1, SIGUSR2}) {
    struct sigaction before {};
    sigaction(signal, nullptr, &before);
    if (before.sa_handler == SIG_IGN) continue;  // as nohup wants it
    struct sigaction action {};
    action.sa_handler = on_end;
    sigaction(signal, &action, nullptr);
  }
}

void report_long_work() {
  start = last_message = seconds_now();
  struct sigaction action {};
  action.sa_handler = on_second;
  action.sa_flags = SA_RESTART;
  sigaction(SIGALRM, &action, nullptr);
  const itimerval every_second{{1, 0}, {1, 0}};
  setitimer(ITIMER_REAL, &every_second, nullptr);
}

void note_message() noexcept { last_message = seconds_now(); }

}  // namespace windtunnel
