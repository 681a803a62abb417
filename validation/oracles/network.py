"""Flows on shared links by progressive filling (Bertsekas & Gallager, Data Networks, 1992, section 6.5.2), and the links of a platform.

The rules are those of docs/model.md, section 5, and docs/concepts.md.
"""
from passes import amount


def fair_rates(paths, capacity):
    """The max-min fair rate of each path, a tuple of links: all rates grow together, and a path stops growing with the first of its links that is full."""
    rates, left = [0.0] * len(paths), {link: capacity[link] for path in paths for link in path}
    growing = set(range(len(paths)))
    while growing:
        users = {}
        for i in growing:
            for link in paths[i]:
                users[link] = users.get(link, 0) + 1
        step = min(left[link] / count for link, count in users.items())
        for i in growing:
            rates[i] += step
        full = {link for link, count in users.items() if left[link] / count <= step * (1 + 1e-12)}
        for link, count in users.items():
            left[link] -= step * count
        growing = {i for i in growing if full.isdisjoint(paths[i])}
    return rates


class Flow:
    def __init__(self, path, size, done):
        self.path, self.left, self.done, self.rate = path, size, done, 0.0


class Fluid:
    """Bytes of flows that go at fair rates; told anew whenever some begin or end."""

    def __init__(self, clock, capacity):
        self.clock, self.capacity, self.flows, self.version, self.since = clock, capacity, [], 0, 0.0

    def start(self, path, size, done):
        if size <= 0:
            return self.clock.after(0, done)
        self.advance()
        self.flows.append(Flow(path, size, done))
        self.share()

    def advance(self):
        for flow in self.flows:
            flow.left -= flow.rate * (self.clock.now - self.since)
        self.since = self.clock.now

    def share(self):
        self.version += 1
        version = self.version
        for flow, rate in zip(self.flows, fair_rates([flow.path for flow in self.flows], self.capacity)):
            flow.rate = rate
        if self.flows:
            self.clock.after(max(0.0, min(flow.left / flow.rate for flow in self.flows)), lambda: self.end_first(version))

    def end_first(self, version):
        """Flows that only rounding tells apart end together."""
        if version != self.version:
            return
        self.advance()
        same = self.clock.now * self.clock.SAME
        ended = [flow for flow in self.flows if flow.left <= flow.rate * same]
        self.flows = [flow for flow in self.flows if flow.left > flow.rate * same]
        self.share()
        for flow in ended:
            flow.done()


class Place:
    """Some GPUs of a node."""

    def __init__(self, node, gpus):
        self.node, self.gpus = node, tuple(gpus)


class Cluster:
    """Which GPUs play which replica and stage, and the links between them."""

    def __init__(self, scenario):
        self.platform, self.parallel = scenario["platform"], scenario["parallel"]
        self.fabric = self.platform["fabric"]
        self.types = [i for i, each in enumerate(self.platform["node_types"]) for _ in range(each["count"])]
        self.capacity = {}

    def type(self, node):
        return self.platform["node_types"][self.types[node]]

    def place(self, replica, stage):
        """The GPUs of a tensor group."""
        p = self.parallel
        size = {"tensor": p["tensor"], "data": p["data"], "pipeline": p["pipeline"]}
        index, ranks = {"data": replica, "pipeline": stage}, []
        for tensor in range(p["tensor"]):
            index["tensor"], rank, stride = tensor, 0, 1
            for axis in p.get("rank_order", "tensor-data-pipeline").split("-"):
                rank += index[axis] * stride
                stride *= size[axis]
            ranks.append(rank)
        gpus = self.platform["node_types"][0]["gpus"]
        where = [self.listed(rank) or divmod(rank, gpus) for rank in ranks]
        assert len({node for node, _ in where}) == 1
        return Place(where[0][0], [gpu for _, gpu in where])

    def listed(self, rank):
        placement = self.parallel.get("placement")
        return tuple(map(int, placement[rank].split(":"))) if isinstance(placement, list) else None

    def nic_rate(self, node):
        return amount(self.type(node)["nic_rate"]) * self.type(node)["nic_efficiency"]

    def node_rate(self, node):
        return self.nic_rate(node) * self.type(node)["nics"]

    def own_rate(self, source, target):
        """What the pair of nodes has alone, where it was measured."""
        for link in self.platform.get("link_overrides", []):
            if (link["from"], link["to"]) == (source, target):
                return amount(link["bandwidth"])
        matrix = self.platform.get("bandwidth_matrix")
        return matrix["rows"][source][target] * 1e9 * matrix["rails"] if matrix else None

    def working_nics(self, node, gpus):
        """The NICs of these GPUs, those next to them where theirs are lost; how many whole ones they carry as much as; and all of the node."""
        kind = self.type(node)
        shares = [1] * kind["nics"]
        for fault in self.platform.get("faults") or []:
            if fault["node"] == node:
                shares[fault["nic"]] = fault["share"]
        nics = set()
        for gpu in gpus:
            nic = gpu * kind["nics"] // kind["gpus"]
            while shares[nic] == 0:
                nic = (nic + 1) % kind["nics"]
            nics.add(nic)
        return tuple(sorted(nics)), len(nics) * min(shares[nic] for nic in nics), shares

    def ends(self, place, direction):
        """The links of one end: the NICs of its GPUs, where they are not all of the node's, and the node's."""
        nics, carried, shares = self.working_nics(place.node, place.gpus)
        links = [(("node", place.node, direction), self.nic_rate(place.node) * sum(shares))]
        if carried < sum(shares):
            links.append((("nics", place.node, nics, direction), self.nic_rate(place.node) * carried))
        return links

    def path(self, source, target):
        links = self.ends(source, "up") + self.ends(target, "down")
        own = self.own_rate(source.node, target.node)
        if own is not None:
            links.append((("pair", source.node, target.node), own))
        size, taper = self.fabric.get("nodes_per_leaf", 0), self.fabric.get("oversubscription", 1)
        if size and taper > 1 and source.node // size != target.node // size:
            for leaf, direction in ((source.node // size, "up"), (target.node // size, "down")):
                nodes = range(leaf * size, min(len(self.types), (leaf + 1) * size))
                links.append((("leaf", leaf, direction), sum(map(self.node_rate, nodes)) / taper))
        self.capacity.update(links)
        return [link for link, _ in links]
