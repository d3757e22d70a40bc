"""Kernels with one mistake each, and the random layers that must show it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Mutant:
    """A file of the package with other text in it, and who must find out.

    Attributes:
        core: "dsp", "mve", "avx2", "blocked", "tiles", "portable" or "rings": whose layers are run.
        kinds: of these layers, by the first part of their names; operators, kernels of rings, or a
            kernel that is forced.
        path: of the file, in the repository.
        old: what stands there once.
        new: what is written instead.
    """

    core: str
    kinds: tuple[str, ...]
    path: str
    old: str
    new: str


_DSP, _MVE, _AVX2 = "templates/kernels", "templates/kernels/mve", "templates/kernels/vector"
_KERNELS = "generator/microtir/kernels"
_WINDOWS = "generator/microtir/operators/common/windows.py"
_POOL = "generator/microtir/operators/pooling/formula.py"
MUTANTS = {
    "hidden states of int16 follow each other as bytes": Mutant(
        "mve", ("gated_s16",), f"{_MVE}/lstm_cells.j2", "vstrh.32 q1, [r4], #8",
        "vstrh.32 q1, [r4], #4",
    ),
    "sums of gates of int16 are rounded twice": Mutant(
        "mve", ("gated_s16",), f"{_KERNELS}/arm_mve/lstm.py", "(_LONG, adds=adds)",
        "(_FINISH, adds=adds)",
    ),
    "weights of vectors are stored without their number": Mutant(
        "mve", ("wide_conv", "wide_transposed"), f"{_KERNELS}/arm_mve/linear.py",
        "            less,\n        )", "            0,\n        )",
    ),
    "the sum of a second pixel is not multiplied by the weights' number": Mutant(
        "mve", ("wide_conv",), "templates/kernels/mve/gemm2.j2", "mul r6, r6, r8\n", "",
    ),
    "the sum of a row is not multiplied by the weights' number": Mutant(
        "mve", ("wide_dense_row",), "templates/kernels/mve/gemm1.j2", "mul r11, r4, r11",
        "mov r11, r4",
    ),
    "weights of channels by vectors lack what all of them have more": Mutant(
        "mve", ("wide_depthwise",), "templates/kernels/mve/depthwise.j2",
        "vadd.i32 {{ sum }}, {{ sum }}, q4\n", "",
    ),
    "odd inputs are added once to what weights lack": Mutant(
        "mve", ("wide_depthwise",), "templates/kernels/mve/depthwise.j2",
        "vadd.i16 q7, q7, q4\n{% endif %}", "{% endif %}",
    ),
    "negative ties are rounded up": Mutant(
        "dsp", ("ties", "conv"), f"{_DSP}/requantise.j2",
        "add {{ sum }}, {{ sum }}, {{ sum }}, asr #31\n", "",
    ),
    "the odd output is not computed": Mutant(
        "dsp", ("dense",), f"{_KERNELS}/arm_dsp/dense.py",
        "return [*blocks, Block(outputs - 2, 1, 1)] if rest % 2 else blocks", "return blocks",
    ),
    "the number of weights is added to half of the outputs": Mutant(
        "dsp", ("wide_dense_row",), f"{_DSP}/dense.j2", "r7, lsl #8", "r7, lsl #7",
    ),
    "weights of four bits are 4 less than they are stored": Mutant(
        "dsp", ("dense_s4_1x8_dsp",), f"{_DSP}/dense_nibbles.j2", "lsl r6, r6, #3",
        "lsl r6, r6, #2",
    ),
    "arguments of gates wrap where they are added": Mutant(
        "mve", ("gated",), f"{_MVE}/gemm1.j2", "vqadd.s16 q0, q0, q1", "vadd.i16 q0, q0, q1",
    ),
    "sums of gates are not shifted to the left": Mutant(
        "mve", ("gated",), f"{_MVE}/gemm1.j2", "vshl.s32 q0, q0, q1\n", "",
    ),
    "groups of channels read the first one": Mutant(
        "dsp", ("grouped",), f"{_KERNELS}/arm_dsp/gemm.py",
        "replace(x, first=number * geometry.image.channels)", "x",
    ),
    "groups of channels of int16 read the first one": Mutant(
        "dsp", ("s16_grouped",), f"{_KERNELS}/arm_dsp/convolution_s16.py",
        "group * channels, group * inputs", "group * channels, group * 0",
    ),
    "floats half way between two integers go up": Mutant(
        "dsp", ("quantize",), f"{_DSP}/quantize.j2",
        "add {{ r }}, r2, {{ r }}, asr #31", "mov {{ r }}, r2",
    ),
    "vectors of floats are multiplied where others are divided": Mutant(
        "mve", ("quantize",), f"{_MVE}/quantize.j2", "vfma.f32 q1, q0, r2\n", "",
    ),
    "a NaN of a vector becomes the largest integer": Mutant(
        "mve", ("quantize",), f"{_MVE}/quantize.j2",
        "vmaxnm.f32 q0, q0, q2\nvmaxnm.f32 q0, q0, q2\nvminnm.f32 q0, q0, q3\n",
        "vminnm.f32 q0, q0, q3\nvmaxnm.f32 q0, q0, q2\nvmaxnm.f32 q0, q0, q2\n",
    ),
    "floats of bytes are multiplied with a rounded reciprocal": Mutant(
        "mve", ("quantize_row",), f"{_MVE}/quantize.j2",
        "vmul.f32 {{ quotient }}, {{ number }}, r3", "vmov.i32 {{ quotient }}, #0",
    ),
    "a NaN among 16 floats becomes the zero point": Mutant(
        "mve", ("quantize_row",), f"{_MVE}/quantize.j2", "cmp r12, #0", "cmp r12, r12",
    ),
    "a NaN becomes the zero point": Mutant(
        "dsp", ("quantize",), f"{_DSP}/quantize.j2", "bvc 3f", "b 3f",
    ),
    "rows are rounded by what is left of their largest value": Mutant(
        "dsp", ("blocks",), f"{_DSP}/rounded_row.j2", "lsllo r12, \\\\r, #1", "movlo r12, \\\\r",
    ),
    "rows half way between two integers go down": Mutant(
        "dsp", ("blocks",), f"{_DSP}/rounded_row.j2", "vcvtr.s32.f32", "vcvt.s32.f32",
    ),
    "scales of blocks are those of the first one": Mutant(
        "dsp", ("blocks",), f"{_DSP}/block_products.j2", "vldmia r4!, {s0-s3}\nstr r4, [sp]\n",
        "vldmia r4, {s0-s3}\n",
    ),
    "the last channels repeat those in front of them": Mutant(
        "dsp", ("blocks",), f"{_KERNELS}/arm_dsp/block_dense.py",
        "yield groups, 1, self.channels - _CHANNELS", "yield groups, 1, 0",
    ),
    "stored integers are not centred": Mutant(
        "dsp", ("dequantize",), f"{_KERNELS}/common/float_edges.py",
        "halves(-run.zero_point)", "halves(0)",
    ),
    "the second pixel of int16 of a phase lies beside the first": Mutant(
        "dsp", ("s16_transposed",), f"{_KERNELS}/arm_dsp/blocks_s16.py",
        "(p * self.pitch + c)", "(p * self.outputs + c)",
    ),
    "the second pixel of a phase lies beside the first": Mutant(
        "mve", ("transposed",), f"{_MVE}/gemm2.j2", "addw r2, r7, #{{ distance }}",
        "addw r2, r7, #{{ channels }}",
    ),
    "a window has the taps of the first group": Mutant(
        "mve", ("grouped",), f"{_KERNELS}/arm_mve/convolution.py",
        "replace(x, first=number * geometry.image.channels)", "x",
    ),
    "taps of a group are copied from each other": Mutant(
        "mve", ("grouped",), f"{_KERNELS}/arm_mve/window_moves.py",
        "Window(geometry.runs_of_row, pitch,", "Window(geometry.runs_of_row, geometry.run_values,",
    ),
    "pixels of a phase lie side by side": Mutant(
        "dsp", ("transposed",), f"{_KERNELS}/arm_dsp/gemm.py",
        "geometry.groups * part.step", "geometry.groups",
    ),
    "taps of a phase are those of the input's order": Mutant(
        "dsp", ("transposed",), f"{_KERNELS}/common/phases.py", "axis])[::-1]", "axis])",
    ),
    "windows of a row of pixels begin where those of the first do": Mutant(
        "dsp", ("transposed",), f"{_KERNELS}/common/phases.py",
        "(left - taps.before, right - taps.behind)",
        "(0, left + right - taps.before - taps.behind)",
    ),
    "every image of a batch is the first": Mutant(
        "dsp", ("frames",), f"{_KERNELS}/common/frames.py",
        "top=number * image.image.height", "top=0",
    ),
    "the last columns of a product begin behind those before": Mutant(
        "dsp", ("matmul",), f"{_DSP}/products.j2", "movhi r8, r9", "movhi r8, r8",
    ),
    "a value without a partner has one": Mutant(
        "dsp", ("matmul",), f"{_DSP}/lines.j2", "uxth r4, r4\n", "pkhbt r4, r4, r4, lsl #16\n",
    ),
    "the zero point of odd values is left out": Mutant(
        "dsp", ("matmul",), f"{_DSP}/lines.j2", "sxtab16 r5, r2, r4, ror #8",
        "sxtb16 r5, r4, ror #8",
    ),
    "the sum of a patch lacks its odd step": Mutant(
        "dsp", ("wide_conv",), f"{_DSP}/patch_sums.j2",
        "sadd16 r2, r2, r4\n{% endif %}\n{% if single",
        "{% endif %}\n{% if single",
    ),
    "weights less a number meet the sum of their inputs less one": Mutant(
        "dsp", ("wide_conv", "wide_depthwise", "wide_transposed"),
        f"{_KERNELS}/arm_dsp/patch_sums.py", "(len(arranged), steps, 2), number)",
        "(len(arranged), steps, 2), number - 1)",
    ),
    "all stacks of floats meet the columns of the first": Mutant(
        "blocked", ("float_matmul",), f"{_KERNELS}/c_blocks/matmul.py",
        "place_of(node, 1, stack)", "place_of(node, 1, stack * 0)",
    ),
    "rows of floats that are columns are read as rows": Mutant(
        "blocked", ("float_matmul",), f"{_KERNELS}/c_blocks/matmul.py",
        "(1, widths[0]) if op.adj_x", "(1, depth) if op.adj_x",
    ),
    "all stacks meet the first matrix": Mutant(
        "dsp", ("matmul",), f"{_KERNELS}/common/matrices.py",
        "place = place + stack // behind % count * size", "place = place + 0 * stack",
    ),
    "runs behind the last turn are left out": Mutant(
        "dsp", ("pad", "slice", "nearest"), f"{_DSP}/runs.j2", "{{ move(rest) -}}\nbx", "bx",
    ),
    "bytes behind the last word of a run are left out": Mutant(
        "dsp", ("pad", "slice", "concatenation"), f"{_KERNELS}/arm_dsp/moves.py",
        "(places if size % _WORD == 0 else [*places, size - _WORD])", "places",
    ),
    "runs of vectors are too far apart": Mutant(
        "mve", ("pad", "slice", "concatenation"), f"{_KERNELS}/arm_mve/moves.py",
        '"bytes": str(step * dtype.bytes - moved)', '"bytes": str(step * dtype.bytes)',
    ),
    "elements are gathered from where they were before": Mutant(
        "mve", ("transpose",), f"{_MVE}/elements.j2", "add r0, r0, r2\n", "",
    ),
    "a turn copies its first element only": Mutant(
        "portable", ("CONCATENATION", "PAD"), f"{_KERNELS}/common/moves.py",
        "copied(first + n * line.source, to + n * line.target)",
        "copied(first, to + n * line.target)",
    ),
    "all parts of an input begin where it does": Mutant(
        "portable", ("SPLIT", "STRIDED_SLICE"), "generator/microtir/rewrite/facts/moves.py",
        "place % (1 << _BITS) if is_copied else 0", "0",
    ),
    "the last channels of a window are those before": Mutant(
        "dsp", ("pool_s8_1x4_dsp_windows",), f"{_DSP}/pool_windows.j2",
        "sub r2, r2, #{{ back }}\n", "",
    ),
    "halves of means below zero go up": Mutant(
        "dsp", ("pool_s8_1x4_dsp_windows",), f"{_DSP}/pool_windows.j2",
        "sel r3, ip, r11", "sel r3, ip, ip",
    ),
    "halves of means of vectors go down": Mutant(
        "mve", ("pool_s8_1x16_mve_windows",), f"{_MVE}/pool_windows.j2",
        "vadd.i{{ bits }} q0, q0, r5\n", "",
    ),
    "means of vectors of int16 are products with half a reciprocal": Mutant(
        "mve", ("pool_s16",), f"{_MVE}/pool_windows.j2", "movt r5, #{{ reciprocal_high }}\n", "",
    ),
    "means of vectors of uint8 are those of int8": Mutant(
        "mve", ("pool_u8",), f"{_KERNELS}/arm_mve/pooling.py",
        'sign, width = "u" if dtype is DType.UINT8 else "s", _WIDTHS[size]',
        'sign, width = "s", _WIDTHS[size]',
    ),
    "halves of interpolated values go up": Mutant(
        "mve", ("resized",), f"{_MVE}/bilinear.j2", "vqadd.s{{ lane }} q0, q0, q1\n", "",
    ),
    "halves of words of interpolated values go up": Mutant(
        "dsp", ("resized",), f"{_DSP}/bilinear.j2", "add r9, r9, r3, lsr #7\n", "",
    ),
    "a pixel to the right is the one to the left": Mutant(
        "dsp", ("resized",), f"{_DSP}/bilinear.j2", "ldrd r0, r3, [r5], #8", "ldrd r0, r3, [r4]",
    ),
    "the rows of an image change places": Mutant(
        "dsp", ("resized",), f"{_DSP}/bilinear.j2", "ldr r6, [r0], #4\nldr r7, [r1], #4",
        "ldr r7, [r0], #4\nldr r6, [r1], #4",
    ),
    "the last word of a row of bytes lies behind those before": Mutant(
        "dsp", ("resized",), f"{_DSP}/bilinear.j2", "sub r3, r3, #2*{{ row_back }}\n", "",
    ),
    "the last word of a pixel meets the next one to the right": Mutant(
        "dsp", ("resized",), f"{_DSP}/bilinear.j2", "sub r5, r5, #2*{{ pixel_back }}\n", "",
    ),
    "the last of three channels has a byte behind it": Mutant(
        "dsp", ("resized",), f"{_DSP}/bilinear.j2", "strh r8, [r1]\n", "str r8, [r1]\n",
    ),
    "the last channels of a pixel move the next one": Mutant(
        "mve", ("resized",), f"{_MVE}/bilinear.j2", "sub r3, r3, #{{ behind }}\n", "",
    ),
    "a pixel to the right is the one below": Mutant(
        "mve", ("resized",), f"{_MVE}/bilinear.j2", "add r5, r0, r5", "add r5, r1, r5",
    ),
    "a window leaves out its last tap": Mutant(
        "dsp", ("pool_s8_1x4_dsp_windows",), f"{_KERNELS}/common/pool_windows.py",
        "places[1:]", "places[1:-1]",
    ),
    "sums of more than 256 elements lose those that are left": Mutant(
        "dsp", ("reduced_int8",), f"{_DSP}/reduce_columns.j2",
        "{% if last.is_there %}", "{% if false %}",
    ),
    "the last lines of a mean are those before": Mutant(
        "mve", ("reduced_int8",), f"{_MVE}/reduce_rows.j2", "subeq r0, r0, r7", "subeq r0, r0, #0",
    ),
    "the end of a clamp of floats is chosen where results are beyond it": Mutant(
        "dsp", ("f32_add", "f32_clamp"), f"{_DSP}/lanes_f32.j2",
        "choose(to, to, end, condition, end)", 'choose(to, to, end, "gt", end)',
    ),
    "eight floats of a run are taken for all": Mutant(
        "dsp", ("f32_add", "f32_clamp"), f"{_DSP}/lanes_f32.j2",
        "{% if left %}", "{% if left and false %}",
    ),
    "columns around an image are those of the row before": Mutant(
        "dsp", ("pool_f32",), f"{_KERNELS}/arm_dsp/pool_floats.py", "if first == stop:", "if True:",
    ),
    "rows of a window of floats follow each other": Mutant(
        "mve", ("f32_conv",), f"{_MVE}/product_f32.j2", "{{ all(row_jump) -}}", "",
    ),
    "the last four channels of floats are behind those before": Mutant(
        "mve", ("f32_conv", "f32_dense"), f"{_MVE}/product_f32.j2",
        "subeq r9, r9, #{{ back }}", "nop",
    ),
    "columns of floats that pixels share are one apart": Mutant(
        "mve", ("f32_depthwise",), f"{_KERNELS}/arm_mve/depthwise_floats.py",
        "if at_ == place", "if c == 0",
    ),
    "bytes behind the last word of a run stay": Mutant(
        "dsp", ("minimum_int8", "maximum_int8"), f"{_DSP}/lanes.j2", "{% if single %}",
        "{% if false %}",
    ),
    "the largest result of a clamp is the least one": Mutant(
        "mve", ("clamped",), f"{_MVE}/lanes.j2",
        "ldr{{ width }} r4, [r2, #4]", "ldr{{ width }} r4, [r2]",
    ),
    "tables are read from zero on": Mutant(
        "mve", ("looked_up",), f"{_KERNELS}/common/elementwise.py",
        "return np.roll(table, dtype.min)", "return table",
    ),
    "a column ends before its last values": Mutant(
        "mve", ("matmul",), f"{_KERNELS}/arm_mve/matmul.py",
        "return BYTES - self.depth % BYTES if self.whole else 0", "return 0",
    ),
    "both rows that lie as columns are the first one": Mutant(
        "mve", ("matmul",), f"{_KERNELS}/arm_mve/matmul.py", "pixel.column + n)", "pixel.column)",
    ),
    "the second pixel of one vector is the first one": Mutant(
        "mve", ("grouped", "matmul"), f"{_MVE}/gemm2.j2",
        "{{ load_some }} q5, [r3]", "{{ load_some }} q5, [r1]",
    ),
    "the second pixel of one vector lies beside the first": Mutant(
        "mve", ("transposed", "grouped"), f"{_MVE}/gemm2.j2",
        "addw r3, r7, #{{ distance }}", "addw r3, r7, #{{ channels }}",
    ),
    "a single pixel of one vector begins a byte late": Mutant(
        "mve", ("matmul",), f"{_MVE}/gemm1.j2",
        "{{ load_some }} q3, [r12]", "{{ load_some }} q3, [r12, #1]",
    ),
    "sums are shifted to the left by the other shift": Mutant(
        "mve", ("gated", "remembering"), f"{_MVE}/gemm1.j2", "q1, [r2, #32]", "q1, [r2, #16]",
    ),
    "ties below zero go up where all sums are divided": Mutant(
        "mve", ("conv", "ties"), f"{_MVE}/requantise.j2",
        "vshr.s32 {{ spare }}, {{ value }}, #31", "vmov.i32 {{ spare }}, #0",
    ),
    "eight values of a column stand twice": Mutant(
        "mve", ("matmul",), f"{_MVE}/columns.j2", "q0, [r6], #56", "q0, [r6, #-8]",
    ),
    "what vectors of input gates add is rounded down": Mutant(
        "mve", ("gated",), f"{_MVE}/lstm_cells.j2", "vrshr.s32 q4, q4, #", "vshr.s32 q4, q4, #",
    ),
    "arguments of vectors of tangents wrap": Mutant(
        "mve", ("gated",), f"{_MVE}/lstm_cells.j2", "vqshl.s32 q0, q0, #15", "vshl.i32 q0, q0, #15",
    ),
    "a word that windows share is in the last of them alone": Mutant(
        "mve", ("grouped",), f"{_KERNELS}/arm_mve/copying.py",
        "targets.setdefault(first + piece, []).append(str(place + piece))",
        "targets[first + piece] = [str(place + piece)]",
    ),
    "the last byte of a run of three stays": Mutant(
        "mve", ("grouped",), f"{_KERNELS}/arm_mve/copying.py", "in {0, length - width}", "in {0}",
    ),
    "zeros stand before the channels of a group": Mutant(
        "mve", ("grouped",), f"{_KERNELS}/arm_mve/linear.py", "(0, more)", "(more, 0)",
    ),
    "the last row of a matrix has the zero point of weights": Mutant(
        "mve", ("matmul",), f"{_MVE}/gemm1.j2", "vadd.i32 q0, q0, r11", "nop",
    ),
    "both rows have the sum of the first one": Mutant(
        "mve", ("matmul",), f"{_MVE}/gemm2.j2", "vaddva.s8 r6, q1", "vaddva.s8 r6, q0",
    ),
    "the sign bits of two bytes of four stay": Mutant(
        "dsp", ("flipped",), f"{_DSP}/lanes.j2", "#0x80808080", "#0x00800080",
    ),
    "sigmoids end on the last line of the other function": Mutant(
        "dsp", ("logistic_int16", "tanh_int16"), f"{_KERNELS}/common/sigmoids.py",
        "saturates=not self.is_logistic", "saturates=self.is_logistic",
    ),
    "the mirror image of a tangent is one step off": Mutant(
        "dsp", ("tanh_int16",), f"{_DSP}/sigmoid_lines.j2", "lsr #30", "lsr #31",
    ),
    "halves of products below zero are rounded up": Mutant(
        "dsp", ("mul_int8",), f"{_DSP}/arithmetic.j2", "add r12, r12, r3, asr #31",
        "add r12, r12, #0",
    ),
    "halves of operands below zero are rounded up": Mutant(
        "dsp", ("add_int16", "sub_int16"), f"{_DSP}/arithmetic.j2", "add r11, r12, r11, asr #31",
        "mov r11, r12",
    ),
    "values of the second of two columns are those of the first": Mutant(
        "dsp", ("s16_matmul",), f"{_DSP}/products_s16.j2", "pkhtb r10, r8, r9, asr #16",
        "pkhbt r10, r9, r8, lsl #16",
    ),
    "the last of an odd number of columns is that behind it": Mutant(
        "dsp", ("s16_matmul",), f"{_DSP}/products_s16.j2", "subeq lr, lr, #2", "subeq lr, lr, #0",
    ),
    "values of the second of two columns are gathered from the first": Mutant(
        "mve", ("s16_matmul",), f"{_MVE}/products_s16.j2", "vadd.i16 q5, q4, r5", "vmov q5, q4",
    ),
    "of two rows beside each other the first one is taken twice": Mutant(
        "mve", ("s16_matmul",), f"{_MVE}/products_s16.j2", "vadd.i16 q7, q6, r5", "vmov q7, q6",
    ),
    "sums of vectors of int16 lose their upper words": Mutant(
        "mve", ("s16_matmul",), f"{_MVE}/products_s16.j2", "vmul.i32 q1, q1, r8",
        "vmov.i32 q1, #0",
    ),
    "sums of vectors of int16 are rounded down": Mutant(
        "mve", ("s16_matmul",), f"{_MVE}/products_s16.j2", "vrshl.s32 q0, r9", "vshl.s32 q0, r9",
    ),
    "the last of an odd number of columns of vectors is that behind it": Mutant(
        "mve", ("s16_matmul",), f"{_MVE}/products_s16.j2", "subeq r12, r12, #2",
        "subeq r12, r12, #0",
    ),
    "values behind the last vector are those of its start": Mutant(
        "mve", ("s16_matmul",), f"{_MVE}/products_s16.j2",
        '{{ products("a" if has_whole else "") }}', '{{ products("") }}',
    ),
    "what is below zero has the factor of what is not": Mutant(
        "dsp", ("rescaled_leaky_relu",), f"{_DSP}/arithmetic.j2", "smmlarmi r12, r3, r6, r7",
        "smmlarmi r12, r3, r8, r9",
    ),
    "sums of int16 lose their upper halves": Mutant(
        "dsp", ("reduced_int16",), f"{_DSP}/reduce_columns.j2", "add r9, r9, r3, asr #16",
        "uxtah r9, r9, r3, ror #16",
    ),
    "halves of means of int16 are rounded up": Mutant(
        "dsp", ("pool_s16",), f"{_DSP}/pool_windows.j2",
        "add {{ sums }}, {{ sums }}, r3, asr #31", "add {{ sums }}, {{ sums }}, #0",
    ),
    "what a difference takes is rounded down before": Mutant(
        "mve", ("squared_difference_int8",), f"{_KERNELS}/common/arithmetic.py",
        "(1 << bits) - 1 - offset", "-offset",
    ),
    "results of sums are not clamped": Mutant(
        "mve", ("add_int8", "sub_int8"), f"{_MVE}/arithmetic.j2",
        "vmax.s{{ bits }} q0, q0, q6", "nop",
    ),
    "constants that all runs read are those of the first one": Mutant(
        "dsp", ("minimum_int8_row", "maximum_int8_row"), f"{_KERNELS}/common/elementwise.py",
        "steps = tuple(step * times for step in inner.steps)", "steps = inner.steps",
    ),
    "the last elements of a row are not its largest": Mutant(
        "dsp", ("softmaxed",), f"{_DSP}/powers.j2", "{% if back %}", "{% if false %}",
    ),
    "the last of an odd number of terms over time is left out": Mutant(
        "dsp", ("remembering",), f"{_DSP}/svdf_time.j2", "{% if single %}", "{% if false %}",
    ),
    "vectors of a memory end behind a part of its last ones": Mutant(
        "mve", ("remembering",), f"{_MVE}/svdf_time.j2", "vctp.16 lr", "vctp.8 lr",
    ),
    "newest features of later filters lie where others do": Mutant(
        "mve", ("remembering",), f"{_MVE}/svdf_memory.j2", "lsl r6, r6, #3", "lsl r6, r6, #2",
    ),
    "outputs of a channel follow each other": Mutant(
        "mve", ("multiplied",), f"{_MVE}/depthwise.j2", "vidup.u8 q4, r10, #{{ every_step }}",
        "vidup.u8 q4, r10, #1",
    ),
    "outputs of a channel of int16 follow each other": Mutant(
        "mve", ("s16_multiplied",), f"{_MVE}/depthwise_s16.j2",
        "vidup.u16 q4, r10, #{{ every_step }}", "vidup.u16 q4, r10, #1",
    ),
    "three outputs of a channel follow each other": Mutant(
        "mve", ("multiplied",), f"{_MVE}/depthwise.j2", "vmul.i8 q4, q4, r10\n", "",
    ),
    "three outputs of a channel of int16 follow each other": Mutant(
        "mve", ("s16_multiplied",), f"{_MVE}/depthwise_s16.j2", "vmul.i16 q4, q4, r10\n", "",
    ),
    "a second vector of outputs overlaps the first as inputs do": Mutant(
        "mve", ("multiplied",), f"{_MVE}/depthwise.j2", "mla r3, r9, r10, r3", "add r3, r3, r9",
    ),
    "windows of a column are as far apart as those of a row": Mutant(
        "mve", ("dwconv_s8_1x16_mve_turned",), f"{_KERNELS}/arm_dsp/plane_windows.py",
        "strides=op.strides[::-1]", "strides=op.strides",
    ),
    "the inverse root of 1 is that of 2": Mutant(
        "mve", ("normalised",), f"{_MVE}/normalise.j2", "mov r4, #2", "mov r4, #1",
    ),
    "quotients by large roots round halves up": Mutant(
        "mve", ("normalised",), f"{_MVE}/normalise.j2", "vadd.i32 {{ value }}, {{ value }}, q3",
        "nop",
    ),
    "quotients of words by large roots round halves up": Mutant(
        "dsp", ("normalised",), f"{_DSP}/normalise.j2", "add r10, r10, r3, asr #31", "nop",
    ),
    "a quotient of 1 wraps": Mutant(
        "dsp", ("normalised",), f"{_DSP}/normalise.j2", "ssat16 r11, #8, r11", "nop",
    ),
    "inverse roots take four steps": Mutant(
        "dsp", ("normalised",), f"{_DSP}/normalise.j2", ".rept 4", ".rept 3",
    ),
    "the last inputs of a gate are those behind": Mutant(
        "dsp", ("gated",), f"{_DSP}/lstm_sums.j2", "ldr r9, [lr, #-{{ back }}]", "ldr r9, [lr]",
    ),
    "new cells wrap": Mutant(
        "dsp", ("gated",), f"{_DSP}/lstm_cells.j2", "qadd16 r8, r8, r11", "sadd16 r8, r8, r11",
    ),
    "quotients are rounded by half of a half": Mutant(
        "dsp", ("softmaxed",), f"{_DSP}/powers_outputs.j2", "sub r5, r6, #1", "sub r5, r6, #2",
    ),
    "logarithms of powers have half a step less": Mutant(
        "mve", ("softmaxed",), f"{_KERNELS}/common/powers.py",
        "results[::-1]) if", "results[::-1] - 2**21) if",
    ),
    "a last channel that is alone is left out": Mutant(
        "dsp", ("pool",), f"{_DSP}/pool_add.j2", "{% if rest %}", '{% if rest and rest != "1" %}',
    ),
    "averages are cut off": Mutant(
        "dsp", ("pool",), f"{_DSP}/pool_average.j2", "movw r2, #{{ half }}", "movw r2, #0",
    ),
    "rows outside of the image are 0": Mutant(
        "dsp", ("depthwise3x3",), f"{_KERNELS}/arm_dsp/planes.py",
        "copying.fill(self.elements, self.zero_point, DType.INT16)",
        "copying.fill(self.elements, 0, DType.INT16)",
    ),
    "the second row of a tile lies on the first": Mutant(
        "dsp", ("conv_s8_16x2_dsp_winograd",), f"{_KERNELS}/arm_dsp/winograd.py",
        "last = te.minimum(pixel.row + 1, self._y1 - 1)", "last = pixel.row",
    ),
    "what lies beside the image is 0 before its transform": Mutant(
        "dsp", ("conv_s8_16x2_dsp_winograd",), f"{_KERNELS}/arm_dsp/winograd_windows.py",
        "self.border = zero * 256 + zero % 256", "self.border = 0",
    ),
    "the last byte of a pixel that ends within a word is left out": Mutant(
        "dsp", ("conv_s8_16x2_dsp_winograd",), f"{_DSP}/copy.j2",
        "orr r2, r2, r3, lsl #16\n", "",
    ),
    "the weights of two channels are transformed on each other": Mutant(
        "dsp", ("conv_s8_16x2_dsp_winograd_bands_2",), f"{_DSP}/winograd_weights.j2",
        "subw r1, r1, #{{ back_bytes }}", "subw r1, r1, #{{ back_bytes }} + 4",
    ),
    "rows of a band have their transforms in one place": Mutant(
        "dsp", ("conv_s8_16x2_dsp_winograd_bands_4",), f"{_KERNELS}/arm_dsp/winograd_bands.py",
        "pixel.row // OUTPUTS % lines", "pixel.row // OUTPUTS % 1",
    ),
    "what waits for the second pixels of tiles are sums": Mutant(
        "dsp", ("conv_s8_8x2_dsp_winograd",), f"{_DSP}/winograd_row_products.j2",
        "sub r10, r8, {{ pair.first }}", "add r10, r8, {{ pair.first }}",
    ),
    "the second pixel of a tile lies on the first": Mutant(
        "dsp", ("conv_s8_4x4_dsp_winograd",), f"{_DSP}/winograd_row_products.j2",
        "addweq r12, r12, #{{ channels }}", "addweq r12, r12, #0",
    ),
    "an odd run of int16 takes a value of the next one": Mutant(
        "dsp", ("s16_conv",), f"{_KERNELS}/arm_dsp/blocks_s16.py",
        'load="ldrh", size=DType.INT16.bytes', 'load="ldrh", size=_WORD',
    ),
    "wide sums are cut off": Mutant(
        "dsp", ("long", "s16_dense"), f"{_DSP}/finish_s16.j2", "add r11, r11, #1\n", "",
    ),
    "wide sums lose their upper words": Mutant(
        "dsp", ("long",), f"{_DSP}/finish_s16.j2", "mla r11, {{ high }}, r8, r11\n", "",
    ),
    "the last channels of int16 lie behind the outputs": Mutant(
        "dsp", ("s16_conv", "s16_dense"), f"{_DSP}/block_s16.j2",
        "movhi r12, r11\n", "movhi r12, r12\n",
    ),
    "halves of words are multiplied crosswise": Mutant(
        "dsp", ("s16_depthwise",), f"{_DSP}/depthwise_s16.j2",
        "smlatt {{ product.high }}, r11", "smlabt {{ product.high }}, r11",
    ),
    "the last channel of depthwise int16 lies beside its place": Mutant(
        "dsp", ("s16_depthwise",), f"{_DSP}/depthwise_s16.j2",
        "subhi r8, r8, #2", "subhi r8, r8, #0",
    ),
    "outputs of neighbouring channels are neighbours where each has several": Mutant(
        "dsp", ("multiplied",), f"{_DSP}/plane_windows.j2",
        "add lr, lr, #{{ every }}", "add lr, lr, #1",
    ),
    "a tap that begins in the middle of a word meets the column before": Mutant(
        "dsp", ("dwconv_s8_4x1_dsp_windows",), f"{_KERNELS}/arm_dsp/plane_windows.py",
        "'bt'[use.column % 2]", "'bb'[use.column % 2]",
    ),
    "columns of a dilated window are neighbours in the image": Mutant(
        "dsp", ("dwconv_s8_4x1_dsp_windows",), f"{_DSP}/split.j2",
        "[r2], #{{ step }}", "[r2], #{{ channels }}",
    ),
    "rows of a phase that lie apart are one line": Mutant(
        "dsp", ("transposed",), f"{_KERNELS}/common/phases.py",
        "self.strides == (1, 1)", "self.step == 1",
    ),
    "entries of a table are found by bytes with a sign": Mutant(
        "mve", ("add_ties",), f"{_MVE}/arithmetic.j2", '"u" if has_table else "s"', '"s"',
    ),
    "the last value of a tail is left out": Mutant(
        "mve", ("conv", "conv1x1"), f"{_MVE}/gemm1.j2",
        "{% if masks %}\nmov r0, #{{ values }}", "{% if masks %}\nmov r0, #{{ values }} - 1",
    ),
    "products of int16 are rounded before they are shifted": Mutant(
        "mve", ("s16_conv", "s16_dense", "s16_depthwise"), f"{_MVE}/requantise.j2",
        "vmulh.s32", "vrmulh.s32",
    ),
    "the clamps of int16 are left out": Mutant(
        "mve", ("s16_conv", "s16_dense", "s16_depthwise"), f"{_MVE}/requantise.j2",
        "vdup.16 {{ spare }}, {{ number }}\n{{ \"vmax\"", "{{ \"vmax\"",
    ),
    "weights are widened without their signs": Mutant(
        "mve", ("s16_conv", "s16_dense"), f"{_KERNELS}/arm_mve/gemm_kernels.py",
        "vldrb.s16", "vldrb.u16",
    ),
    "odd channels of int16 are those of bytes": Mutant(
        "mve", ("s16_depthwise",), f"{_MVE}/depthwise_s16.j2",
        "vmullt.s16 q7, q4, q5", "vmullb.s16 q7, q4, q5",
    ),
    "what a bias has above its lower part is left out": Mutant(
        "mve", ("s16_conv", "long"), f"{_MVE}/gemm2.j2", "vadd.i32 q1, q1, q2\n{% endif %}",
        "{% endif %}",
    ),
    "what a bias of one channel has above its lower part is left out": Mutant(
        "mve", ("s16_depthwise",), f"{_MVE}/depthwise_s16.j2",
        "vadd.i32 {{ sum }}, {{ sum }}, q4\n", "",
    ),
    "upper parts of wide sums are forgotten": Mutant(
        "mve", ("long", "longest"), f"{_MVE}/gemm1.j2", "vadd.i32 q3, q3, q0", "vmov q3, q0",
    ),
    "lower parts of wide sums stay whole": Mutant(
        "mve", ("long", "longest"), f"{_MVE}/gemm2.j2",
        "ubfx {{ sum }}, {{ sum }}, #0, #{{ rescaling.bits }}\n", "",
    ),
    "wide sums are cut too late": Mutant(
        "mve", ("longest",), f"{_KERNELS}/arm_mve/gemm_kernels.py",
        "_TURNS_OF_PART = 4", "_TURNS_OF_PART = 12",
    ),
    "the upper clamp is left out": Mutant(
        "mve", ("conv", "dense"), f"{_MVE}/requantise.j2",
        "vmin.s16 {{ value }}, {{ value }}, {{ spare }}\n", "",
    ),
    "negative ties of a vector's operand are rounded up": Mutant(
        "avx2", ("add_ties",), f"{_AVX2}/support/sum.j2",
        "scaled = _mm256_add_epi32(scaled, _mm256_srai_epi32(scaled, 31));", "",
    ),
    "negative ties of a vector's sum are rounded up": Mutant(
        "avx2", ("ties", "add_ties"), f"{_AVX2}/support/all.j2",
        "if (corrects_ties) {", "if (0 && corrects_ties) {",
    ),
    "the last element of a row is left out": Mutant(
        "avx2", ("add",), f"{_AVX2}/add.j2",
        "memcpy(y + {{ whole }}, some[2], {{ rest }});",
        "memcpy(y + {{ whole }}, some[2], {{ rest }} - 1);",
    ),
    "pixels of a block lie one channel too near": Mutant(
        "avx2", ("conv",), f"{_AVX2}/support/product.j2",
        "y + 2 * channels, other", "y + 2 * channels - 1, other",
    ),
    "the last pixels of a row are left out": Mutant(
        "blocked", ("conv", "convsame"), f"{_KERNELS}/common/macro_kernel.py",
        "for n in range(b.times))", "for n in range(b.times - 1))",
    ),
    "the last turn begins behind the last channel of the one before": Mutant(
        "blocked", ("conv", "dense"), f"{_KERNELS}/common/runs.py",
        "[min(first, channels - at_once) for", "[min(first, max(0, channels - at_once - 1)) for",
    ),
    "negative ties of a block are rounded up": Mutant(
        "blocked", ("ties",), f"{_KERNELS}/c_blocks/finish.py",
        "            high = high + (high >> 31)\n", "            pass\n",
    ),
    "borders of rows are 0": Mutant(
        "blocked", ("conv", "depthwise"), f"{_KERNELS}/common/bordered_rows.py",
        "self.border = te.as_expr(zero, dtype)", "self.border = te.as_expr(0 * zero, dtype)",
    ),
    "the second row of a tile in plain C lies on the first": Mutant(
        "tiles", (), f"{_KERNELS}/c_blocks/winograd.py",
        "last = te.minimum(pixel.row + 1, self.y1 - 1)", "last = pixel.row",
    ),
    "what lies beside the image is 0 in plain C": Mutant(
        "tiles", (), f"{_KERNELS}/c_blocks/winograd.py",
        "te.as_expr(self.x.type.quant.zero_point, ", "te.as_expr(0, ",
    ),
    "negative averages are rounded up": Mutant(
        "portable", ("AVERAGE_POOL_2D",), _POOL, "total - half", "total",
    ),
    "windows lose their last column": Mutant(
        "portable", ("MAX_POOL_2D",), _WINDOWS, "self.size - origin,", "self.size - 1 - origin,",
    ),
    "a window asks for one row too few": Mutant(
        "rings", ("conv_s8_4x2_c", "conv_s8_2x4_dsp"), _WINDOWS,
        "rows.reach(1))", "rows.reach(1) - 1)",
    ),
    "rings begin with another row": Mutant(
        "rings", ("dwconv_s8_2x4_dsp", "conv_s8_2x4_mve"), f"{_KERNELS}/common/layer.py",
        "else index % layout.rows", "else (index + 1) % layout.rows",
    ),
}  # fmt: skip
"""What is wrong, in words, and where."""
