"""What docs/scenario.schema.json says a key may be: the values of choices, and a changed amount or number."""
import re

AMOUNT = re.compile(r"^\s*([0-9.]+(?:[eE][-+]?[0-9]+)?)\s*(.*?)\s*$")
AMOUNTS = ("bytes", "seconds", "data_rate", "flop_rate")


def kept(method):
    """Keeps the answers of a method about nodes of the schema, which stay what they are."""
    answers = {}

    def answer(self, node):
        if id(node) not in answers:
            answers[id(node)] = node, method(self, node)  # the node too, lest another gets its place in memory
        return answers[id(node)][1]

    return answer


class Schema:
    def __init__(self, document):
        self.document = document
        self.keys = self.all_keys()

    @kept
    def resolved(self, node):
        """The node that a $ref or an allOf of one part stands for."""
        while "$ref" in node or len(node.get("allOf", [])) == 1:
            if "$ref" in node:
                target = self.document
                for part in node["$ref"][2:].split("/"):
                    target = target[part]
                node = target
            else:
                node = {**self.resolved(node["allOf"][0]), **{k: v for k, v in node.items() if k != "allOf"}}
        return node

    @kept
    def choices(self, node):
        """What an anyOf may be, each resolved; the node itself where there is no choice."""
        node = self.resolved(node)
        return [each for choice in node["anyOf"] for each in self.choices(choice)] if "anyOf" in node else [node]

    @kept
    def properties(self, node):
        """The keys of the object among what the node may be; of a list, those of its items."""
        for choice in self.choices(node):
            if "properties" in choice:
                return choice["properties"]
            if isinstance(choice.get("items"), dict):
                return self.properties(choice["items"])
        return {}

    @kept
    def is_list(self, node):
        return any(isinstance(choice.get("items"), dict) and self.properties(choice["items"]) for choice in self.choices(node))

    def all_keys(self):
        """Every key as a pointer, N for a place in a list: {"/parallel/tensor": node}."""
        found = {}

        def walk(pointer, properties):
            for key, node in properties.items():
                found[f"{pointer}/{key}"] = node
                walk(f"{pointer}/{key}" + ("/N" if self.is_list(node) else ""), self.properties(node))

        walk("", self.document["properties"])
        return found

    def words(self, pointer):
        """The values of a choice: an enumeration, or true and false."""
        values = []
        for choice in self.choices(self.keys[pointer]):
            if "boolean" in choice.get("type", ()):
                values += [False, True]
            values += [value for value in choice.get("enum", []) if value is not None]
        return values

    def lists(self, pointer):
        """Each value of a list's items alone, and all of them."""
        words = [word for choice in self.choices(self.keys[pointer]) for word in self.resolved(choice.get("items", {})).get("enum", [])]
        return [[word] for word in words] + [words]

    def codec_choices(self):
        """What the schema says of each codec, by its name. Those without parameters share an entry."""
        choices = {}
        for choice in self.document["definitions"]["codec"]["anyOf"]:
            name = choice["properties"]["codec"]
            choices |= {each: choice for each in name.get("enum", [name.get("const")])}
        return choices

    def codecs(self):
        """The keys of each codec, by its name."""
        return {name: [key for key in choice["propertyNames"]["enum"] if key != "codec"] for name, choice in self.codec_choices().items()}

    def codec_choice(self, name):
        return self.codec_choices()[name]

    def needs_sums(self, codec):
        """Whether the codec compresses gradients only: what it leaves out it feeds back."""
        return "error_feedback" in self.codecs()[codec]

    def sends_factors(self, codec):
        """Whether the codec makes two messages of one, which cannot go in chunks."""
        return "chunks" in self.codec_choice(codec)["properties"]

    def changed(self, node, value, rng):
        """Another value of the same kind as `value`, or as the schema's example where there is none; nothing for what it
        cannot change: texts, lists and objects."""
        kinds = self.choices(node)
        if value is None:
            value = next((each["examples"][0] for each in [self.resolved(node), *kinds] if each.get("examples")), None)
        if isinstance(value, bool):
            return rng.random() < 0.5
        words = [word for kind in kinds for word in kind.get("enum", []) if word is not None]
        if words:
            return rng.choice(words)
        factor = rng.choice((0.1, 0.5, 0.9, 1.5, 3, 10))
        if isinstance(value, (int, float)):
            return self.within(kinds, value * factor if value else rng.choice((0.5, 1, 2)))
        if isinstance(value, str) and self.is_amount(node) and (amount := AMOUNT.match(value)):
            return f"{float(amount[1]) * factor:.6g} {amount[2]}"
        return None

    @staticmethod
    def within(kinds, number):
        for kind in kinds:
            if "minimum" not in kind and "maximum" not in kind and "type" not in kind:
                continue
            number = max(kind.get("minimum", number), min(kind.get("maximum", number), number))
            if "integer" in kind.get("type", ()):
                return max(int(number), kind.get("minimum", int(number)))
        return number

    @kept
    def is_amount(self, node):
        if "$ref" in node:
            return node["$ref"].rsplit("/", 1)[1] in AMOUNTS or self.is_amount(self.resolved(node))
        return any(self.is_amount(choice) for key in ("anyOf", "allOf") for choice in node.get(key, []))


def changed_amount(text, factor):
    """An amount times `factor`, in its own unit."""
    amount = AMOUNT.match(text)
    return f"{float(amount[1]) * factor:.9g} {amount[2]}"
