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

const char* name_of(Phase phase) {
  switch (phase) {
    case Phase::forward:
      return "forward";
    case Phase::backward:
      return "backward";
    case Phase::weight_gradient:
      return "weight gradient";
    case Phase::optimizer:
      return "optimizer";
    case Phase::activation:
      return "activation";
    case Phase::gradient:
      return "gradient";
    case Phase::tensor_reduce:
      return "tensor all-reduce";
    case Phase::gradient_reduce:
      return "gradient all-reduce";
    case Phase::embedding_sync:
      return "embedding all-reduce";
    case Phase::parameter_gather:
      return "parameter all-gather";
    case Phase::encode:
      return "encode";
    case Phase::decode:
      return "decode";
    case Phase::overhead:
      return "overhead";
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
