"""Generators: pipelines as classes with declared inputs, outputs and compile-time parameters, and the command line that compiles them.

    @hl.generator(name="brighten")
    class Brighten:
        offset = hl.GeneratorParam(1)
        input = hl.InputBuffer(hl.UInt(8), 2)
        output = hl.OutputBuffer(hl.UInt(8), 2)

        def generate(self):
            x, y = hl.vars("x y")
            self.output[x, y] = self.input[x, y] + self.offset
"""
