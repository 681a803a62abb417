"""Makes a scenario that breaks a promise smaller, as long as it breaks the same promise."""
import copy


def places(value, path=()):
    """Where something could be left out, from the outside in."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    found = [path + (key,) for key, _ in items]
    for key, each in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        found += places(each, path + (key,))
    return sorted(found, key=len) if not path else found


def without(document, path):
    smaller = copy.deepcopy(document)
    holder = smaller
    for key in path[:-1]:
        holder = holder[key]
    del holder[path[-1]]
    return smaller


def shrink(document, still_broken, budget=400):
    """Leaves out one key after the other, again and again until nothing more can go."""
    shrunk = True
    while shrunk and budget > 0:
        shrunk = False
        for path in places(document):
            try:
                smaller = without(document, path)
            except (KeyError, IndexError, TypeError):
                continue  # gone with what was around it
            budget -= 1
            if budget < 0:
                break
            if still_broken(smaller):
                document, shrunk = smaller, True
    return document
