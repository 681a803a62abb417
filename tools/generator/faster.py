"""The same scenario on hardware of which one thing is faster."""
import json
import marshal

from schema_values import AMOUNT, changed_amount

FACTOR = 2
KINDS = ("network", "links in a node", "compute", "memory")


def spelled_out(document, library):
    """The scenario with the platform and its devices in place of their names."""
    document = marshal.loads(marshal.dumps(document))
    if isinstance(document["platform"], str):
        document["platform"] = library.copy("platform", document["platform"])
    for node in document["platform"]["node_types"]:
        if isinstance(node["device"], str):
            node["device"] = library.copy("device", node["device"])
    return document


def by_rings(document, library):
    """The scenario with all-reduces that no tuner chooses a way for (docs/model.md): on faster links it may choose one that is slower."""
    document = spelled_out(document, library)
    document["parallel"]["gradient_ring"] = "ring"
    for node in document["platform"]["node_types"]:
        node["interconnect"]["reduces_in_switch"] = False
    return document


def faster(document, kind, library):
    document = spelled_out(document, library)
    platform = document["platform"]

    def raise_amounts(value, *keys):
        for key in keys:
            if isinstance(value.get(key), str):
                value[key] = changed_amount(value[key], FACTOR)

    for node in platform["node_types"]:
        if kind == "network":
            raise_amounts(node, "nic_rate")
        elif kind == "links in a node":
            raise_amounts(node["interconnect"], "saturated_bandwidth", "small_bandwidth", "point_to_point")
        elif kind == "compute":
            raise_amounts(node["device"]["peak"], *(key for key in node["device"]["peak"] if key != "source"))
        else:
            raise_amounts(node["device"]["memory"], "bandwidth")
    if kind == "network":
        fabric = platform["fabric"]
        raise_amounts(fabric, "link_rate", "local_rate", "global_rate")
        for cable in fabric.get("links") or []:
            count, times, rate = cable[2].rpartition(" x ")
            cable[2] = count + times + changed_amount(rate, FACTOR)
        for link in platform.get("link_overrides") or []:
            raise_amounts(link, "bandwidth")  # a share of faults is one of a faster NIC
        if matrix := platform.get("bandwidth_matrix"):
            matrix["rows"] = [[FACTOR * rate for rate in row] for row in matrix["rows"]]
    return document


def with_shaken_links(document, part, library):
    """With the rate of each node's NICs and of each link that is told alone off by that part, every other one the other way."""
    document = spelled_out(document, library)
    platform = document["platform"]
    nodes = [dict(node, count=1) for node in platform["node_types"] for _ in range(node.get("count", document.get("nodes", 1)))]
    links = platform.get("link_overrides") or []
    for owners, key in ((nodes, "nic_rate"), (links, "bandwidth")):
        for number, owner in enumerate(owners):
            amount = AMOUNT.match(owner[key])
            owner[key] = f"{float(amount[1]) * (1 + part * (-1) ** number)!r} {amount[2]}"
    platform["node_types"] = nodes
    return document


def may_be_slower(document, kind):
    """Whether the program chooses something by a rule of thumb, which may choose worse where something is faster; or takes off a codec's
    time what messages in chunks take on their way (docs/compression.md), of which a faster way leaves less; or waits for copies to the host, which
    are interpolated between the emptiest and the fullest draw of unevenly loaded experts (docs/moe.md, Uneven token distribution)."""
    compression = document.get("compression", {})
    text = json.dumps(document.get("parallel", {})) + json.dumps(compression)
    experts = document.get("model", {}).get("moe") or {} if isinstance(document.get("model"), dict) else {}
    if document.get("training", {}).get("activation_offload_fraction") and experts.get("balance"):
        return True
    return (any(word in text for word in ('"balanced"', '"search"', '"auto"')) or
            kind in ("network", "links in a node") and any(each.get("chunks", 1) > 1 for each in compression.values()))
