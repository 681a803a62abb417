"""The blocks `noise` and `job` of a drawn scenario, and what makes no difference to a job."""

FAILING = ("gpu", "memory", "nic", "network", "node", "software")


def noise_of(features, rng):
    kind = features["noise"]
    if kind is None:
        return None
    slow = [{"node": 0, "slowdown": rng.choice((0.5, 1.25, 4))}, {"gpu": 0, "slowdown": 2}][:1 if features["/parallel/placement"] == "permuted" else rng.choice((1, 2))]
    sigma = rng.choice((0.01, 0.3))
    return {
        "jitter": {"pass_jitter": sigma, "step_jitter": {"all": sigma, "all_lasts": "1 s", "gpu": sigma, "node": 0.01, "correlation": 0.3}},
        "slow": {"slow_parts": slow},
        "all": {"name": "drawn", "pass_jitter": 0.02, "spread": {"gpu": sigma, "node": sigma}, "step_jitter": {"all": 0.01},
                "slow_parts": slow, "links": {"rate": sigma, "latency": sigma},
                "stalls": {"per_gpu_hour": rng.choice((0.1, 1000)), "median": "20 ms", "spread": 1}}}[kind]


def job_of(features, rng):
    kind = features["job"]
    if kind is None:
        return None
    length = {"steps": rng.choice((1, 1000, 1_000_000))} if rng.random() < 0.5 else {"tokens": rng.choice((1, 10 ** 9, 10 ** 13))}
    block = {"short": {"restart": {"spare_nodes": rng.choice((0, 1, 8))}, "price": {"gpu_hour": 2.5}},
             "long": {"step_time": "10 s", "evaluation": {"every": 100, "time": "1 min"},
                      "start": {"time": "2 min", "warm_up": "10 s"},
                      "checkpoint": {"kind": "asynchronous", "sharded": rng.random() < 0.5, "interval": "20 min", "storage_bandwidth": "10 GB/s",
                                     "node_bandwidth": "2 GB/s", "snapshot_bandwidth": "5 GB/s", "kept": 2},
                      "power": {"computing": 650, "communicating": 350, "idle": 100, "node": 2000, "pue": 1.2, "kg_co2_per_kwh": 0.4}},
             "elastic": {"failures": dict.fromkeys(FAILING, rng.choice((0, 1, 10))),
                         "restart": {"elastic": True, "detection": "1 min", "repair": rng.choice(("1 h", "48 h"))},
                         "price": {"gpu_hour": 2.5, "storage_tb_month": 20, "currency": "EUR"}}}[kind]
    return length | block | ({"plan": "best"} if "step_time" not in block and rng.random() < 0.05 else {})


def jobs_by_degree(scenario):
    """A job on replicas that are cut by context alone, and by the pipeline alone, into as many parts as the scenario's: nodes, failures
    and checkpoints are the same. Steps take as long as the block says."""
    parallel, training = scenario["parallel"], scenario["training"]
    degree = parallel.get("context", 1) * parallel.get("pipeline", 1)
    shared = {
        **{key: scenario[key] for key in ("version", "platform", "nodes") if key in scenario},
        "software": "torchtitan-2025",  # which has fused attention, as a ring needs, on every GPU
        "model": {**scenario["model"], "layers": 4 * degree, "sequence": 512 * degree},
        "training": {"precision": "fp16", "attention": "flash", "global_batch": training["global_batch"], "micro_batch": training["micro_batch"]},
        "job": {"steps": 1000, "step_time": "10 s", "failures": dict.fromkeys(FAILING, 10), "start": {"time": "1 min"},
                "restart": {"elastic": True, "repair": "48 h"}}}
    kept = {key: parallel[key] for key in ("tensor", "data", "sequence_parallel") if key in parallel}
    return [{**shared, "parallel": {**kept, axis: degree}} for axis in ("context", "pipeline")] if degree > 1 else []
