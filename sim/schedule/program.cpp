#include "schedule/program.hpp"

namespace windtunnel {

const char* name_of(Stream stream) {
  switch (stream) {
    case Stream::compute:
      return "compute";
    case Stream::tensor:
      return "comm:tensor";
    case Stream::pipeline:
      return "comm:pipeline";
    case Stream::data:
      return "comm:data";
    case Stream::codec:
      return "codec";
  }
  return "?";
}

const char* name_of(Traffic traffic) {
  switch (traffic) {
    case Traffic::pipeline_forward:
      return "pipeline_forward";
    case Traffic::pipeline_backward:
      return "pipeline_backward";
    case Traffic::data_gradients:
      return "data_gradients";
    case Traffic::embedding_sync:
      return "embedding_sync";
    case Traffic::tensor_activations:
      return "tensor_activations";
    case Traffic::zero_gather:
      return "zero_gather";
  }
  return "?";
}

}  // namespace windtunnel
