#!/usr/bin/env python3
"""Turns the arguments and exact peak bytes of Megatron-LM's functional tests into a measurement set.

    tools/megatron_golden.py validation/megatron-lm/golden-memory.csv > validation/megatron-lm/golden-memory.json

A row of the table is one test in one environment: its arguments (model_config.yaml), and mem-max-allocated-bytes of its golden values, which
the last rank logs; `recorded` is the day of the commit that brought the golden values,
`deterministic` whether the test asks for it (--deterministic-mode, or NVTE_ALLOW_NONDETERMINISTIC_ALGO 0). Each column is mapped, has no bearing on memory, or makes the row be skipped, with the reason; a column or value that
is not known here is an error.
"""
import argparse
import collections
import csv
import json
import sys

MIB = 1 << 20
SOFTWARE = "megatron-core-2026@0"

# Columns that change nothing in what the last rank holds, and why.
IRRELEVANT = {
    "iteration_time_s_median": "models of a few layers: launches alone", "samples": "iterations that were logged",
    "mem_max_allocated_last": "the same as the maximum", "mem_allocated_bytes_last": "between iterations",
    "group_query_attention": "num_query_groups says it", "max_position_embeddings": "the sequence's length in all rows that are taken",
    "moe_grouped_gemm": "how experts' products are launched", "moe_token_dispatcher_type": "how tokens are exchanged",
    "overlap_grad_reduce": "buffers are those of the gradients", "overlap_param_gather": "buffers are those of the parameters",
    "recompute_method": "uniform, of one layer", "recompute_num_layers": "one layer", "fp8_recipe": "only with fp8_format",
    "fp8_param_gather": "only with fp8_format", "tokenizer_type": "vocab_size says it", "cuda_graph_impl": "pools of their own",
    "main_grads_dtype": "fp32 is the default", "exp_avg_dtype": "fp32 is the default",
    "spec": "the layers' implementation", "commit": "one for all",
}

# A row with a value in one of these columns is skipped.
NOT_MODELLED = {
    "fp8_format": "casts of fp8 weights by recipe", "use_megatron_fsdp": "Megatron-FSDP", "data_parallel_sharding_strategy": "Megatron-FSDP",
    "fine_grained_activation_offloading": "offload of activations", "hybrid_layer_pattern": "state-space layers",
    "hybrid_override_pattern": "state-space layers", "mtp_num_layers": "multi-token prediction",
    "pipeline_model_parallel_layout": "a layout of layers by letter", "moe_layer_freq": "which layers have experts, as a list",
        "recompute_modules": "modules that are recomputed alone", "tp_comm_overlap": "buffers of overlapped tensor collectives",
    "use_torch_fsdp2": "PyTorch FSDP", "use_precision_aware_optimizer": "states of other types",
}

# A row whose test has one of these words in its name was run with an argument that has no column.
IN_THE_NAME = {
    "grpo": "reinforcement learning", "defer_embedding_wgrad_compute": "inputs of the output head are kept for all microbatches", "release": "neither the batch nor the number of nodes is told",
}


# What the arguments of a test (model_config.yaml) say that has no column.
EXTRA_ARGUMENTS = {
    "gpt3_mcore_te_tp2_pp2_mla_1node": {"model": {"mla": {"query_rank": 192, "key_value_rank": 64, "key_size": 16, "rope_size": 8, "value_size": 16}}},
    "gpt3_mcore_te_tp1_pp4_vp1_uneven_pipeline_1node": {"parallel": {"stage_layers": [2, 4, 4, 2]}},
    "gpt3_mcore_te_tp1_pp4_vp2_account_for_embedding_loss_in_pipeline_split_1node": {"parallel": {"edge_layers": {"embedding": 1, "loss": 1}}},
}


def skip_reason(row):
    if row["group"] not in ("gpt", "moe", "mixtral"):
        return f"no decoder of one kind of layer: {row['group']}"
    for column, reason in NOT_MODELLED.items():
        if row[column]:
            return reason
    for word, reason in IN_THE_NAME.items():
        if word in row["test"]:
            return reason
    if row["multi_latent_attention"] and row["test"] not in EXTRA_ARGUMENTS:
        return "ranks of latent attention are not told"
    if row["cross_entropy_loss_fusion"] and row["recorded"] < "2026":
        return "a loss compiled by PyTorch of 2024, which holds 4 to 8 bytes more of each logit"
    if row["optimizer"] == "muon":
        return "the optimizer Muon"
    if row["num_layers_per_virtual_pipeline_stage"] and microbatches(row) % number(row, "pipeline_model_parallel_size"):
        return "interleaving with microbatches that are no multiple of the stages"
    return None


def number(row, column, otherwise=1):
    return int(row[column]) if row[column] else otherwise


def gpus(row):
    return number(row, "nodes") * number(row, "gpus_per_node", 8)


def data_parallel(row):
    return gpus(row) // (number(row, "tensor_model_parallel_size") * number(row, "pipeline_model_parallel_size") * number(row, "context_parallel_size"))


def microbatches(row):
    return number(row, "global_batch_size") // number(row, "micro_batch_size") // data_parallel(row)


def model_of(row):
    model = {"name": "functional-test", "family": "gpt", "layers": number(row, "num_layers"), "hidden": number(row, "hidden_size"),
             "heads": number(row, "num_attention_heads"), "sequence": number(row, "seq_length"), "vocab": number(row, "vocab_size", 50257),
             "tied_embeddings": not row["untie_embeddings_and_output_weights"], "rotary": row["position_embedding_type"] == "rope",
             "gated_mlp": bool(row["swiglu"])}
    for key, column in (("kv_heads", "num_query_groups"), ("ffn_hidden", "ffn_hidden_size"), ("vocab_divisor", "make_vocab_size_divisible_by")):
        if row[column]:
            model[key] = int(row[column])
    if row["normalization"] == "RMSNorm":
        model["family"] = "llama"
    if "qk_layernorm" in row["test"]:  # --qk-layernorm, which has no column
        model["qk_norm"] = True
    if row["num_experts"]:
        model["moe"] = {"experts": int(row["num_experts"]), "top_k": number(row, "moe_router_topk", 2),
                        "ffn_hidden": number(row, "moe_ffn_hidden_size", model.get("ffn_hidden", 4 * model["hidden"]))}
        if row["moe_shared_expert_intermediate_size"]:
            model["moe"]["shared_ffn_hidden"] = int(row["moe_shared_expert_intermediate_size"])
    return model


def parallel_of(row):
    tensor, pipeline = number(row, "tensor_model_parallel_size"), number(row, "pipeline_model_parallel_size")
    parallel = {"tensor": tensor, "pipeline": pipeline, "context": number(row, "context_parallel_size"), "data": data_parallel(row),
                "sequence_parallel": bool(row["sequence_parallel"]) and tensor > 1, "zero_stage": 1 if row["use_distributed_optimizer"] else 0}
    if "multi_dist_optimizer_instances" in row["test"]:  # --num-distributed-optimizer-instances 2, which has no column
        group = data_parallel(row) // 2
        parallel |= {"zero_group": group} if group > 1 else {"zero_stage": 0}  # one replica shards nothing
    if row["num_experts"]:
        parallel["expert"] = number(row, "expert_model_parallel_size")
        parallel["expert_tensor"] = number(row, "expert_tensor_parallel_size", tensor)  # the default is the tensor group's
    chunks = number(row, "num_virtual_stages_per_pipeline_rank")
    if row["num_layers_per_virtual_pipeline_stage"]:
        chunks = number(row, "num_layers") // pipeline // int(row["num_layers_per_virtual_pipeline_stage"])
    if chunks > 1 and pipeline > 1:
        parallel |= {"schedule": "interleaved_1f1b", "virtual_pipeline": chunks}
    return parallel


def scenario_of(row):
    # "local" and "unfused" attention keep the scores; Transformer Engine's own choice does not, but for that of the containers "lts" before
    # May 2025, which the retired environment "draco" ran: asked to be deterministic, it takes no fused kernel.
    has_old_engine = "draco" in row["env"] or ("lts" in row["env"] and row["recorded"] < "2025-05")
    keeps_scores = row["attention_backend"] in ("unfused", "local") or row["transformer_impl"] == "local" or bool(
        has_old_engine and row["deterministic"] and not row["attention_backend"])
    # Without --accumulate-allreduce-grads-in-fp32, which bf16 implies, gradients are as weights (validate_args in megatron/training/arguments.py).
    precision = "bf16" if row["bf16"] else "fp16" if row["fp16"] else "fp32"
    training = {"global_batch": number(row, "global_batch_size"), "micro_batch": number(row, "micro_batch_size"), "precision": precision,
                "gradient_dtype": "fp16" if precision == "fp16" else "fp32", "attention": "standard" if keeps_scores else "flash",
                "recompute": row["recompute_granularity"] or "none"}
    if row["cross_entropy_loss_fusion"]:  # its default implementation, "native" (megatron/training/arguments.py)
        training["cross_entropy"] = "vocab_parallel_compiled"
    platform = next((name for word, name in (("h100", "dgx-h100"), ("gb200", "gb200-nvl72")) if word in row["env"]), "hgx-a100-80gb")
    of_node = 4 if platform == "gb200-nvl72" else 8
    told = EXTRA_ARGUMENTS.get(row["test"], {})
    return {"platform": platform, "nodes": -(-gpus(row) // of_node), "model": model_of(row) | told.get("model", {}), "training": training,
            "parallel": parallel_of(row) | told.get("parallel", {})}


MAPPED = {
    "group", "test", "env", "nodes", "gpus_per_node", "mem_max_allocated_bytes", "num_layers", "hidden_size", "ffn_hidden_size", "num_attention_heads",
    "num_query_groups", "seq_length", "vocab_size", "make_vocab_size_divisible_by", "micro_batch_size", "global_batch_size",
    "tensor_model_parallel_size", "pipeline_model_parallel_size", "num_layers_per_virtual_pipeline_stage", "num_virtual_stages_per_pipeline_rank",
    "context_parallel_size", "expert_model_parallel_size", "expert_tensor_parallel_size", "num_experts", "moe_router_topk", "moe_ffn_hidden_size",
    "moe_shared_expert_intermediate_size", "sequence_parallel", "use_distributed_optimizer", "recompute_granularity", "bf16", "fp16", "swiglu",
    "untie_embeddings_and_output_weights", "transformer_impl", "attention_backend", "optimizer", "position_embedding_type", "normalization",
    "cross_entropy_loss_fusion", "multi_latent_attention", "recorded", "deterministic",
}


def point_of(row):
    scenario = scenario_of(row)
    return {"id": f"{row['test']}/{row['env']}", "group": "experts" if row["num_experts"] else "dense", "scenario": scenario,
            "measured": {"max_allocated_mib_by_rank": {str(gpus(row) - 1): round(int(row["mem_max_allocated_bytes"]) / MIB, 1)}}}


def measurement_set(rows):
    return {
        "schema": "windtunnel/measurements-v1", "name": "megatron-lm-golden-memory", "kind": "iteration",
        "source": {"citation": f"NVIDIA, Megatron-LM at {rows[0]['commit']}: golden values and arguments of tests/functional_tests/test_cases",
                   "licence": "BSD-3-Clause"},
        "note": "Peaks of torch.cuda's allocator on the last rank, exact to the byte, of models of a few layers: fixed buffers weigh more than "
                "in real runs. Times are left out. The last logged figure of some environments is of an earlier release.",
        "base": {"software": SOFTWARE},
        "points": [point_of(row) for row in rows if skip_reason(row) is None],
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table")
    parser.add_argument("--skipped", action="store_true", help="print why rows are skipped")
    parser.add_argument("--check", metavar="FILE", help="fail where the file holds something else")
    arguments = parser.parse_args()
    with open(arguments.table, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    unknown = set(rows[0]) ^ (MAPPED | set(IRRELEVANT) | set(NOT_MODELLED))
    if unknown:
        sys.exit("columns that are neither mapped nor explained, or are missing: " + ", ".join(sorted(unknown)))
    if arguments.skipped:
        reasons = collections.Counter(filter(None, map(skip_reason, rows)))
        for reason, count in reasons.most_common():
            print(f"{count:4}  {reason}")
        print(f"{len(rows) - reasons.total():4}  of {len(rows)} rows are taken")
        return
    text = json.dumps(measurement_set(rows), indent=1) + "\n"
    if arguments.check:
        with open(arguments.check, encoding="utf-8") as file:
            sys.exit(0 if file.read() == text else f"{arguments.check} is not what {arguments.table} gives: write it again")
    sys.stdout.write(text)


if __name__ == "__main__":
    main()
