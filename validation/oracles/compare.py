"""What the program says beside what an oracle says."""

RELATIVE = 1e-9
NANOSECOND = 1.001e-9  # a trace has microseconds with three decimals, a time in it is rounded by up to half a nanosecond, an end twice


class Comparison:
    def __init__(self):
        self.compared, self.differences = 0, []

    def fail(self, what, program, oracle):
        self.differences.append(f"{what}: the program says {program}, the oracle {oracle}")

    def equal(self, what, program, oracle):
        self.compared += 1
        if program != oracle:
            self.fail(what, program, oracle)

    def within(self, what, program, oracle, tolerance):
        self.compared += 1
        if not abs(program - oracle) <= tolerance:
            self.fail(what, repr(program), repr(oracle))

    def relative(self, what, program, oracle, tolerance=RELATIVE):
        self.within(what, program, oracle, tolerance * max(abs(program), abs(oracle)))
