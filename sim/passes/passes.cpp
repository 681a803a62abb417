#include "passes/pass.hpp"

namespace windtunnel {

#define WT_PASS(name) const OperationPass& name##_pass();
#include "passes/passes.def"
#undef WT_PASS

const std::vector<OperationPass>& operation_passes() {
  static const std::vector<OperationPass> passes{
#define WT_PASS(name) name##_pass(),
#include "passes/passes.def"
#undef WT_PASS
  };
  return passes;
}

}  // namespace windtunnel
