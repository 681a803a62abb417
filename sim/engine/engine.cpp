#include "engine/engine.hpp"

#include "engine/heap_engine.hpp"
#include "engine/native_engine.hpp"
#include "engine/simgrid_engine.hpp"

namespace windtunnel {

std::unique_ptr<Engine> make_engine(EngineKind kind, const Network& network) {
  if (kind == EngineKind::heap) return std::make_unique<detail::HeapEngine>(network);
  if (kind == EngineKind::native) return detail::make_native_engine(network);
  return detail::make_simgrid_engine(network);
}

}  // namespace windtunnel
