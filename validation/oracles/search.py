"""Oracle of searches: every plan, or every placement, simulated one by one, against `rank` and `"placement": "search"`.

The plans and what they need are enumerated here (docs/rank.md, closed_forms.py); only their times are the program's, from one sweep.
"""
import itertools

from closed_forms import Forms
from compare import Comparison
from draw import SOURCE, Draw
from fluid import drawn_platform
from passes import amount

KEYS = {"tensor": "/parallel/tensor", "pipeline": "/parallel/pipeline", "data": "/parallel/data", "virtual_pipeline": "/parallel/virtual_pipeline",
        "schedule": "/parallel/schedule", "zero_stage": "/parallel/zero_stage", "sequence_parallel": "/parallel/sequence_parallel",
        "micro_batch": "/training/micro_batch", "recompute": "/training/recompute"}


def draw(random):
    return draw_rank(Draw(random)) if random.random() < 0.8 else draw_placement(Draw(random))


def whole_job(d, name, nodes, gpus, layers, heads, batch):
    """A scenario of which only the plan is open."""
    model = d.model(layers, 1) | {"heads": heads, "kv_heads": heads, "hidden": heads * d.random.choice([32, 64])}
    model["ffn_hidden"] = 4 * model["hidden"]
    software = d.software()
    software["pipeline_send"] = d.random.choice(["eager", "blocking_pairs"])
    training = d.training(1, 1) | {"global_batch": batch, "micro_batch": 1}
    return {"version": 1, "name": name, "model": model, "platform": drawn_platform(d, nodes, gpus), "nodes": nodes, "software": software,
            "training": training, "parallel": {}, "compression": {}}


# Plans

def draw_rank(d):
    random = d.random
    nodes, gpus = random.choice([(1, 4), (2, 2), (3, 2), (2, 4), (4, 2), (6, 1)])
    scenario = whole_job(d, "rank", nodes, gpus, random.choice([4, 6, 8, 12]), 4, nodes * gpus * random.choice([1, 2, 3, 4]))
    scenario["parallel"] = {"data": nodes * gpus, "overlap_gradient_reduce": random.choice([True, False])}
    space = scenario["search"] = {}
    if d.chance(0.95):
        space["micro_batch"] = random.choice([[1], [2], [1, 2]])
    if d.chance(0.3):
        space["tensor"] = random.sample([1, 2, 4], 2)
    if d.chance(0.3):
        space["pipeline"] = random.sample([1, 2, 3, 4], 3)
    extra = random.choice([{}, {"virtual_pipeline": [1, 2]}, {"schedule": ["1f1b", "zero_bubble_h1"]}, {"schedule": ["gpipe", "1f1b"]}, {"zero_stage": [0, 1]},
                           {"recompute": ["none", "full"]}, {"sequence_parallel": [False, True]}])
    space |= extra
    if not space:  # a block that lists nothing tries every axis
        space["micro_batch"] = [1]
    if d.chance(0.3):
        space["memory_margin"] = random.choice(["12 %", "10 MiB"])
    # Memory in which some of the plans fit.
    scenario["software"]["memory"] |= {"fixed_work": "1 MiB", "extra_context": "1 MiB"}
    for kind in scenario["platform"]["node_types"]:
        kind["device"]["memory"]["context"] = "1 MiB"
    needs = [max(needed(scenario, plan)) for plan in plans(scenario) if is_legal(scenario, plan)]
    if needs and d.chance(0.8):
        usable = int(random.choice(needs) * random.uniform(1, 1.06))
        for kind in scenario["platform"]["node_types"]:
            kind["device"]["memory"]["usable"] = f"{usable} B"
    return scenario


def divisors(n):
    return [i for i in range(1, n + 1) if n % i == 0]


def plans(scenario):
    """Every plan of the search block, as docs/rank.md names them: some are no plans."""
    space, parallel, training = scenario["search"], scenario["parallel"], scenario["training"]
    gpus = scenario["platform"]["node_types"][0]["gpus"] * scenario["nodes"]
    tensor = space.get("tensor", divisors(scenario["platform"]["node_types"][0]["gpus"]))
    pipeline = space.get("pipeline", [p for p in divisors(gpus) if p <= scenario["model"]["layers"]])
    micro_batch = space.get("micro_batch", [1, 2, 4, 8, 16, 32])
    given = {"virtual_pipeline": 1, "schedule": None, "zero_stage": parallel.get("zero_stage", 0), "recompute": training["recompute"], "sequence_parallel": False}
    others = [space.get(key, [given[key]]) for key in given]
    for t, p, b, *rest in itertools.product(tensor, pipeline, micro_batch, *others):
        plan = {"tensor": t, "pipeline": p, "data": gpus // (t * p) if gpus % (t * p) == 0 else 0, "micro_batch": b, **dict(zip(given, rest))}
        plan["schedule"] = plan["schedule"] or ("interleaved_1f1b" if plan["virtual_pipeline"] > 1 else "1f1b")
        yield plan


def is_legal(scenario, plan):
    model, batch, gpus = scenario["model"], scenario["training"]["global_batch"], scenario["platform"]["node_types"][0]["gpus"]
    t, p, d, v, b = (plan[key] for key in ("tensor", "pipeline", "data", "virtual_pipeline", "micro_batch"))
    if not d or batch % (d * b) or model["layers"] % (p * v) or model["heads"] % t or (t > gpus and t % gpus) or (t <= gpus and gpus % t):
        return False
    if v > 1 and (p == 1 or batch // (d * b) % p):
        return False
    # The same work under two names is tried once.
    return not (plan["sequence_parallel"] and t == 1) and not (plan["zero_stage"] and d == 1)


def with_plan(scenario, plan):
    parallel = {key: plan[key] for key in KEYS if KEYS[key].startswith("/parallel")}
    parallel["stage_layers"] = [scenario["model"]["layers"] // plan["pipeline"]] * plan["pipeline"]
    return scenario | {"parallel": scenario["parallel"] | parallel,
                       "training": scenario["training"] | {key: plan[key] for key in ("micro_batch", "recompute")}}


def needed(scenario, plan):
    """Bytes that each stage needs."""
    forms = Forms(with_plan(scenario, plan))
    return [forms.memory(stage)["required"] for stage in range(plan["pipeline"])]


def has_room(scenario, plan):
    margin, usable = scenario["search"].get("memory_margin", "5 %"), amount(scenario["platform"]["node_types"][0]["device"]["memory"]["usable"])
    share = float(margin.split()[0]) / 100 if margin.endswith("%") else None
    return all(each * (1 + share) <= usable if share is not None else each + amount(margin) <= usable for each in needed(scenario, plan))


def check_rank(program, scenario):
    found = Comparison()
    tried = [plan for plan in plans(scenario) if is_legal(scenario, plan) and has_room(scenario, plan)]
    # Layers that the file says are not balanced among unlike GPUs: other numbers of stages have even ones.
    said = program.rank(scenario | {"parallel": scenario["parallel"] | {"stage_layers": [scenario["model"]["layers"]]}}, 4)
    times = []
    if tried:
        base = {key: value for key, value in scenario.items() if key != "search"}
        rows = program.sweep(base, [{KEYS[key]: plan[key] for key in KEYS} for plan in tried])
        for plan, row in rows.values():
            if row["ok"]:
                times.append(row["iteration_time_s"])
            else:
                found.fail(f"the program refuses {plan}", row.get("error"), "plays")
    times.sort()
    found.equal("plans of the table", len(said["plans"]), min(4, len(times)))
    if times:
        found.equal("proven", said["proven"], True)
    for place, (plan, time) in enumerate(zip(said["plans"], times)):
        found.relative(f"time of plan {place + 1}", plan["iteration_time_s"], time)
    return found


# Placements

def draw_placement(d):
    """One tensor group a node, and cards that are never full: what the search estimates is then what is played."""
    random = d.random
    stages, replicas = random.choice([(2, 1), (3, 1), (1, 3)] * 3 + [(4, 1), (2, 2), (1, 4)] * 2 + [(5, 1)] * (random.random() < 0.1))
    tensor, nodes = random.choice([1, 2]), stages * replicas
    layers = random.randint(1, 3)
    scenario = whole_job(d, "placement", nodes, tensor, stages * layers, 4, replicas * random.randint(1, 6))
    kinds = random.randint(1, nodes)
    borders = sorted(random.sample(range(1, nodes), kinds - 1))
    counts = [b - a for a, b in zip([0] + borders, borders + [nodes])]
    scenario["platform"] = {"name": "drawn", "node_types": [d.node_type(f"gpu{i}-drawn", tensor, tensor, "400 Gbps", n) for i, n in enumerate(counts)],
                            "fabric": {"latency": d.text(1, 50, "us"), "collective_latency": d.text(1, 50, "us")} | SOURCE,
                            "bandwidth_matrix": {"unit": "GB/s", "rows": [[0 if i == j else float(f"{d.between(0.1, 2):.6g}") for j in range(nodes)]
                                                                          for i in range(nodes)]} | SOURCE}
    scenario["model"]["tied_embeddings"] = False
    scenario["parallel"] = {"tensor": tensor, "pipeline": stages, "data": replicas, "schedule": random.choice(["1f1b", "gpipe", "zero_bubble_h1"]),
                            "zero_stage": random.choice([0, 1]) if replicas > 1 else 0, "placement": "search"}
    return scenario


def check_placement(program, scenario):
    found = Comparison()
    nodes, tensor = scenario["nodes"], scenario["parallel"]["tensor"]
    orders = [[f"{node}:{gpu}" for node in order for gpu in range(tensor)] for order in itertools.permutations(range(nodes))]
    placed = scenario | {"parallel": scenario["parallel"] | {"placement": "megatron"}}
    rows = program.sweep(placed, [{"/parallel/placement": order} for order in orders])
    best = min(row["iteration_time_s"] for _, row in rows.values())
    found.equal("placements", len(rows), len(orders))
    found.relative("iteration_time_s", program.run(scenario)["iteration_time_s"], best)
    return found


def check(program, scenario, random):
    return check_rank(program, scenario) if "search" in scenario else check_placement(program, scenario)
