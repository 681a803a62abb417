#include "engine/engine.hpp"

#include "core/contracts.hpp"
#include "engine/heap_engine.hpp"
#include "engine/native_engine.hpp"
#include "engine/simgrid_engine.hpp"

namespace windtunnel {

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
  return detail::make_simgrid_engine(network);
}

}  // namespace windtunnel
