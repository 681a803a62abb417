#include "engine/engine.hpp"

#include <dlfcn.h>

#include <string>

#include "core/contracts.hpp"
#include "core/problem.hpp"
#include "engine/heap_engine.hpp"
#include "engine/native_engine.hpp"

namespace windtunnel {
namespace {

/// The engine of the module simgrid_engine.cpp, which lies beside the program or in its library folder.
std::unique_ptr<Engine> make_simgrid_engine(const Network& network) {
  void* const module = dlopen("windtunnel-simgrid.so", RTLD_LAZY | RTLD_LOCAL);
  void* const make = module == nullptr ? nullptr : dlsym(module, "windtunnel_make_simgrid_engine");
  if (make == nullptr) throw EnvironmentError(std::string("cannot load SimGrid: ") + dlerror());
  return std::unique_ptr<Engine>(reinterpret_cast<Engine* (*)(const Network&)>(make)(network));
}

}  // namespace

std::string_view name_of(EngineKind kind) {
  switch (kind) {
    case EngineKind::simgrid:
      return "simgrid";
    case EngineKind::native:
      return "native";
    case EngineKind::heap:
      return "heap";
  }
  WT_ENSURE(false);
  return "";
}

EngineKind engine_named(std::string_view name) {
  for (const EngineKind kind : {EngineKind::simgrid, EngineKind::native, EngineKind::heap})
    if (name_of(kind) == name) return kind;
  WT_EXPECT(false);
  return EngineKind::simgrid;
}

std::unique_ptr<Engine> make_engine(EngineKind kind, const Network& network) {
  if (kind == EngineKind::heap) return std::make_unique<detail::HeapEngine>(network);
  if (kind == EngineKind::native) return detail::make_native_engine(network);
  return make_simgrid_engine(network);
}

}  // namespace windtunnel
