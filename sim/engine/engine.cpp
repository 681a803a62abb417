#include "engine/engine.hpp"

#include <dlfcn.h>

#include <string>

#include "core/contracts.hpp"
#include "core/problem.hpp"

namespace windtunnel {

std::unique_ptr<Engine> make_simgrid_engine(const Network& network) {
  void* const module = dlopen("windtunnel-simgrid.so", RTLD_LAZY | RTLD_LOCAL);
  void* const make = module == nullptr ? nullptr : dlsym(module, "windtunnel_make_simgrid_engine");
  if (make == nullptr)
    throw EnvironmentError(std::string("cannot load SimGrid: ") + dlerror() +
                           " (--engine native does without)");
  return std::unique_ptr<Engine>(reinterpret_cast<Engine* (*)(const Network&)>(make)(network));
}

MakeEngine engine_named(std::string_view name) {
  if (name == "simgrid") return make_simgrid_engine;
  if (name == "heap") return make_heap_engine;
  WT_EXPECT(name == "native");
  return make_native_engine;
}

}  // namespace windtunnel
