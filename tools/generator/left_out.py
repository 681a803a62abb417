"""Keys of the schema that no drawn scenario has, and why. A key that is neither drawn nor listed here fails the test of the generator."""
LABEL = "says something to the reader, not to the program"
LEFT_OUT = {
    "$schema": LABEL,
    "description": LABEL,
    "source": LABEL,
    **{f"/compression/{traffic}/{key}": "of powersgd and topk, which compress gradients only"
       for traffic in ("pipeline_forward", "tensor_activations", "zero_gather") for key in ("rank", "density", "error_feedback")},
    "/model/extends": "files that are put together; a test of the reader has it",
    "/platform/extends": "files that are put together; a test of the reader has it",
    "/platform/node_types/N/extends": "files that are put together; a test of the reader has it",
    "/platform/node_types/N/device/extends": "files that are put together; a test of the reader has it",
    **{f"/software/experts/elsewhere/N/{key}": "of devices and precisions by name, in shipped files, which are drawn whole; tests of software profiles have it"
       for key in ("devices", "precisions")},
    "/software/extends": "files that are put together; a test of the reader has it",
    **{f"/software/supports/{key}": "what rank tries, not what is simulated; tests of search have it"
       for key in ("data", "micro_batch", "precision", "expert_tensor", "no_sync")},
    "/software/release": "says which of a shipped profile's releases is meant, which are drawn by their names",
    **{key: "what is best, not what is simulated; tests of sweep and search have it" for key in ("/sweep/objective", "/sweep/plan", "/search/objective")},
    "/search/precision": "of GPUs that compute in several; a test of search has it",
    "/search/no_sync": "of stacks that keep whole gradients; a test of search has it",
    "/memory_correction": "what `calibrate --memory` writes of a set of runs; no file of that kind is shipped",
}


def left_out(pointer):
    return pointer in LEFT_OUT or pointer.rsplit("/", 1)[1] in LEFT_OUT
