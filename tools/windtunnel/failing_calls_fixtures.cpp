// Makes one call of a system function fail, at each place in turn: what a full disk, a limit or a network drive does. Loaded before the C library:
//
//   FAIL_CALL=write FAIL_AT=3 FAIL_ERRNO=28 LD_PRELOAD=libwindtunnel_failing_calls.so windtunnel run a.json --out out
//
// FAIL_AT counts from 1; with "3+" the third call fails and all behind it. Without it none fails. FAIL_COUNT names a file that gets a line when
// the process ends: how often the function was called.
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

struct Order {
  std::string call, count_file;
  long at = 0, reason = EIO;
  bool fails_ever_after = false;
  std::atomic<long> calls = 0;

  Order() {
    const auto text_of = [](const char* name) {
      const char* const text = std::getenv(name);
      return std::string(text == nullptr ? "" : text);
    };
    call = text_of("FAIL_CALL");
    count_file = text_of("FAIL_COUNT");
    at = std::atol(text_of("FAIL_AT").c_str());
    fails_ever_after = text_of("FAIL_AT").ends_with('+');
    if (const std::string number = text_of("FAIL_ERRNO"); !number.empty())
      reason = std::atol(number.c_str());
  }
  ~Order() {
    if (count_file.empty()) return;
    if (std::FILE* file = std::fopen(count_file.c_str(), "a")) {
      std::fprintf(file, "%ld\n", calls.load());
      std::fclose(file);
    }
  }
};

Order& order() {
  static Order only;
  return only;
}
__attribute__((constructor)) void read_order() { order(); }

bool fails(const char* name) {
  Order& given = order();
  if (given.call != name) return false;
  const long number = ++given.calls;
  if (given.at == 0 || number < given.at) return false;
  if (number > given.at && !given.fails_ever_after) return false;
  errno = static_cast<int>(given.reason);
  return true;
}

template <class Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

#define FORWARD(result, name, failure, parameters, arguments) \
  extern "C" result name parameters {                         \
    static auto* const real = next<result parameters>(#name); \
    return fails(#name) ? (failure) : real arguments;         \
  }

FORWARD(DIR*, opendir, nullptr, (const char* path), (path))
FORWARD(dirent*, readdir, nullptr, (DIR * folder), (folder))
FORWARD(ssize_t, read, -1, (int file, void* data, size_t size), (file, data, size))
FORWARD(int, fsync, -1, (int file), (file))
FORWARD(int, fdatasync, -1, (int file), (file))
FORWARD(int, rename, -1, (const char* from, const char* to), (from, to))
FORWARD(int, link, -1, (const char* from, const char* to), (from, to))
FORWARD(int, mkdir, -1, (const char* path, mode_t mode), (path, mode))
FORWARD(int, stat, -1, (const char* path, struct stat* status), (path, status))
FORWARD(pid_t, fork, -1, (), ())
FORWARD(int, pipe2, -1, (int* ends, int flags), (ends, flags))

extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                              void* (*work)(void*), void* argument) {
  static auto* const real = next<decltype(pthread_create)>("pthread_create");
  return fails("pthread_create") ? errno : real(thread, attributes, work, argument);
}

extern "C" int open(const char* path, int flags, ...) {
  static auto* const real = next<int(const char*, int, ...)>("open");
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  return fails("open") ? -1 : real(path, flags, mode);
}

/// Messages are not disturbed: the test reads the reason in them.
extern "C" ssize_t write(int file, const void* data, size_t size) {
  static auto* const real = next<ssize_t(int, const void*, size_t)>("write");
  return file != STDERR_FILENO && fails("write") ? -1 : real(file, data, size);
}
