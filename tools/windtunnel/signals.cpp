#include "windtunnel/signals.hpp"

#include <signal.h>

#include "core/staged_files.hpp"

namespace windtunnel {
namespace {

void on_end(int signal) {
  remove_staged_files();
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

}  // namespace

void clean_up_on_signals() {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction before {};
    sigaction(signal, nullptr, &before);
    if (before.sa_handler == SIG_IGN) continue;  // as nohup wants it
    struct sigaction action {};
    action.sa_handler = on_end;
    sigaction(signal, &action, nullptr);
  }
}

}  // namespace windtunnel
