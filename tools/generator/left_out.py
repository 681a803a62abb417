"""Keys of the schema that no drawn scenario has, and why. A key that is neither drawn nor listed here fails the test of the generator."""
LABEL = "says something to the reader, not to the program"
LEFT_OUT = {
    "$schema": LABEL,
    "description": LABEL,
    **{f"/compression/{traffic}/{key}": "of powersgd and topk, which compress gradients only"
       for traffic in ("pipeline_forward", "tensor_activations", "zero_gather") for key in ("rank", "density", "error_feedback")},
    "/platform/extends": "files that are put together; a test of the reader has it",
    "/platform/domain_nodes": "refused beside pairs of nodes with rates of their own, and changes what a node is; tests of reader and platform have it",
    **{key: "of models with experts, whose plans are refused more often than not; tests of cost, questions and search have it"
       for key in ("/model/moe", "/model/mla", "/parallel/expert", "/parallel/expert_tensor", "/search/expert", "/search/expert_tensor", "/search/context",
                   *(f"/model/moe/{name}" for name in ("experts", "top_k", "ffn_hidden", "shared_ffn_hidden", "dense_layers", "every",
                                                       "node_limit", "capacity", "balance", "balance/zipf", "balance/shares")),
                   *(f"/model/mla/{name}" for name in ("query_rank", "key_value_rank", "key_size", "rope_size", "value_size")))},
    **{f"/parallel/{key}": "multiplies the GPUs, or takes layers that divide; drawn by the property tests of sim/simulate (drawn_scenario.hpp)"
       for key in ("context", "context_method", "edge_layers", "edge_layers/embedding", "edge_layers/loss")},
    **{f"/software/flash_elsewhere/N/{key}": "of devices by name; tests of software profiles have it"
       for key in ("devices", "forward_efficiency", "backward_efficiency", "source")},
    "/software/flash_elsewhere": "of devices by name; tests of software profiles have it",
    **{f"/software/experts/elsewhere{key}": "of models, devices and precisions by name; tests of software profiles have it"
       for key in ("", *(f"/N/{name}" for name in ("models", "models/N/name", "models/N/layers", "models/N/hidden", "models/N/experts", "devices",
                                                   "precisions", "dispatch", "exchange_multiprocessors", "kernels", "loop_launch",
                                                   "overlap_exchanges", "exchange_slowdown", "pads_tokens", "adds_biases", "source")))},
    **{f"/software/experts/{key}": "of models with experts; tests of cost and questions have it"
       for key in ("exchange_slowdown", "pads_tokens", "adds_biases")},
    "/training/recompute_modules": "mostly of models with experts; tests of passes, cost and scenarios have it",
    "/software/release": "says which of a shipped profile's releases is meant; tests of software profiles have it",
    **{key: "what is best, not what is simulated; tests of sweep and search have it" for key in ("/sweep/objective", "/sweep/plan", "/search/objective")},
    "/search/precision": "of GPUs that compute in several; a test of search has it",
    "/memory_correction": "what `calibrate --memory` writes of a set of runs; no file of that kind is shipped",
}


def left_out(pointer):
    if pointer == "/job" or pointer.startswith("/job/"):
        return True  # of `windtunnel job`, which plays weeks; its own tests draw failures
    if pointer == "/noise" or pointer.startswith("/noise/"):
        return True  # of `windtunnel run --steps`; its own tests draw
    return pointer in LEFT_OUT or pointer.rsplit("/", 1)[1] in LEFT_OUT
