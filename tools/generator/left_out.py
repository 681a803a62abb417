"""Keys of the schema that no drawn scenario has, and why. A key that is neither drawn nor listed here fails the test of the generator."""
LABEL = "says something to the reader, not to the program"
LEFT_OUT = {
    "$schema": LABEL,
    "description": LABEL,
    **{f"/compression/{traffic}/{key}": "of powersgd and topk, which compress gradients only"
       for traffic in ("pipeline_forward", "tensor_activations", "zero_gather") for key in ("rank", "density", "error_feedback")},
    "/memory_correction": "what `calibrate --memory` writes of a set of runs; no file of that kind is shipped",
}


def left_out(pointer):
    return pointer in LEFT_OUT or pointer.rsplit("/", 1)[1] in LEFT_OUT
