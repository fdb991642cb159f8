"""Old notations of MLIR become today's, operation by operation, or stay as they are."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from runners.toolchains.iree.notations import port_notations

NEWEST = "3.13.0"


def port(text: str) -> str:
    return port_notations(text, NEWEST)[0]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("func private @g(i32) -> i32", "func.func private @g(i32) -> i32"),
        ("  builtin.func @g() {", "  func.func @g() {"),
        ("%c = constant 4 : index", "%c = arith.constant 4 : index"),
        ("%g = constant @callee : () -> ()", "%g = func.constant @callee : () -> ()"),
        ("%s = std.subf %a, %b : f32", "%s = arith.subf %a, %b : f32"),
        ('%b = cmpi "ult", %x, %y : i8', "%b = arith.cmpi ult, %x, %y : i8"),
        ("%w = zexti %x : i8 to i32", "%w = arith.extui %x : i8 to i32"),
        ("%d = dim %m, %c0 : memref<?xf32>", "%d = memref.dim %m, %c0 : memref<?xf32>"),
        ("%d = memref.dim %t, %c0 : tensor<?xf32>", "%d = tensor.dim %t, %c0 : tensor<?xf32>"),
        ("    cond_br %p, ^a, ^b", "    cf.cond_br %p, ^a, ^b"),
        ("    store %v, %m[%i] : memref<4xf32>", "    memref.store %v, %m[%i] : memref<4xf32>"),
        ("%m = arith.minf %a, %b : f16", "%m = arith.minimumf %a, %b : f16"),
        (
            "%t = subtensor_insert %a into %b[0] [1] [1] : T into U",
            "%t = tensor.insert_slice %a into %b[0] [1] [1] : T into U",
        ),
    ],
)
def test_operations_of_the_standard_dialect(old: str, new: str) -> None:
    assert port(old) == new


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (
            "%0 = linalg.init_tensor [%m, 8, %n] : tensor<?x8x?xf32>",
            "%0 = tensor.empty(%m, %n) : tensor<?x8x?xf32>",
        ),
        (
            "%1 = linalg.fill(%v, %t) : i8, tensor<2xi8> -> tensor<2xi8>",
            "%1 = linalg.fill ins(%v : i8) outs(%t : tensor<2xi8>) -> tensor<2xi8>",
        ),
        (
            "linalg.fill(%m, %v) : memref<4x4xf32>, f32",
            "linalg.fill ins(%v : f32) outs(%m : memref<4x4xf32>)",
        ),
        (
            "%2 = tensor.expand_shape %x [[0, 1], [2]] : tensor<8x3xi1> into tensor<2x4x3xi1>",
            "%2 = tensor.expand_shape %x [[0, 1], [2]] output_shape [2, 4, 3] : tensor<8x3xi1> into tensor<2x4x3xi1>",
        ),
        (
            "%3 = linalg.tensor_reshape %x [[0], [1, 2]] : tensor<2x3x4xf32> into tensor<2x12xf32>",
            "%3 = tensor.collapse_shape %x [[0], [1, 2]] : tensor<2x3x4xf32> into tensor<2x12xf32>",
        ),
        (
            "%4 = vector.extract %v[1, 0] : vector<2x3x8xf16>",
            "%4 = vector.extract %v[1, 0] : vector<8xf16> from vector<2x3x8xf16>",
        ),
        ("scf.foreach_thread (%i) in (%n) {", "scf.forall (%i) in (%n) {"),
        ("%5 = splat %x : vector<2xf32>", "%5 = vector.broadcast %x : f32 to vector<2xf32>"),
        ("%6 = splat %x : tensor<2xi8>", "%6 = tensor.splat %x : tensor<2xi8>"),
        ("%7 = vector.splat %x : vector<[4]xf32>", "%7 = vector.splat %x : vector<[4]xf32>"),  # a scalable extent
        ("%7 = vector.splat %x : vector<8xi1>", "%7 = vector.broadcast %x : i1 to vector<8xi1>"),
        (
            "%8 = vector.extractelement %v[%i : index] : vector<4xf16>",
            "%8 = vector.extract %v[%i] : f16 from vector<4xf16>",
        ),
        (
            "%9 = vector.insertelement %x, %v[%i : index] : vector<4xf16>",
            "%9 = vector.insert %x, %v[%i] : f16 into vector<4xf16>",
        ),
        ("memref<4xf32, offset: ?, strides: [2]>", "memref<4xf32, strided<[2], offset: ?>>"),
        ("  %10 = std.call @g(%a) : (i8) -> i8", "  %10 = func.call @g(%a) : (i8) -> i8"),
        (
            "%11 = linalg.batch_matmul_transpose_a ins(%a, %b : T, U) outs(%c : V) -> V",
            "%11 = linalg.batch_matmul indexing_maps = [affine_map<(b, m, n, k) -> (b, k, m)>,"
            " affine_map<(b, m, n, k) -> (b, k, n)>, affine_map<(b, m, n, k) -> (b, m, n)>]"
            " ins(%a, %b : T, U) outs(%c : V) -> V",
        ),
        (
            '#t = {iterator_types = ["parallel"]}\nlinalg.indexed_generic #t ins(%a : T) {\n^bb0(%i: index, %x: i8):',
            '#t = {iterator_types = ["parallel"]}\nlinalg.generic #t ins(%a : T) {\n^bb0(%x: i8):'
            " %i = linalg.index 0 : index",
        ),
    ],
)
def test_operations_of_linalg_tensor_and_vector(old: str, new: str) -> None:
    assert port(old) == new


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("%0 = mhlo.subtract %a, %b : tensor<f32>", "%0 = stablehlo.subtract %a, %b : tensor<f32>"),
        (
            '%1 = "mhlo.reverse"(%a) {dimensions = dense<[0, 2]> : tensor<2xi64>} : (T) -> T',
            '%1 = "stablehlo.reverse"(%a) {dimensions = array<i64: 0, 2>} : (T) -> T',
        ),
        (
            '%2 = "mhlo.broadcast_in_dim"(%a) {broadcast_dimensions = dense<> : tensor<0xi64>} : (S) -> T',
            '%2 = "stablehlo.broadcast_in_dim"(%a) {broadcast_dimensions = array<i64>} : (S) -> T',
        ),
        ("strides = dense<2> : tensor<3xi64>", "strides = array<i64: 2, 2, 2>"),
        ('compare_type = "TOTALORDER"', "compare_type = #stablehlo<comparison_type TOTALORDER>"),
        ("#mhlo.rng_distribution<NORMAL>", "#stablehlo<rng_distribution NORMAL>"),
        ('precision_config = ["HIGHEST"]', "precision_config = [#stablehlo<precision HIGHEST>]"),
        ("#mhlo.scatter<index_vector_dim = 1>", "#stablehlo.scatter<index_vector_dim = 1>"),
        ("mhlo.dynamic-update-slice", "stablehlo.dynamic_update_slice"),
        (
            '%3 = "mhlo.rng_normal"(%a, %b, %c) : (S, S, T) -> U',
            '%3 = "stablehlo.rng"(%a, %b, %c) {rng_distribution = #stablehlo<rng_distribution NORMAL>}'
            " : (S, S, T) -> U",
        ),
        ("rng_algorithm = 2 : i32", "rng_algorithm = #stablehlo<rng_algorithm PHILOX>"),
        (
            'chlo.compare(%a) {comparison_direction = "GE"}',
            "chlo.compare(%a) {comparison_direction = #chlo<comparison_direction GE>}",
        ),
        (
            "scatter_dimension_numbers = {index_vector_dim = 1 : i64, inserted_window_dims = dense<> : tensor<0xi64>,"
            " scatter_dims_to_operand_dims = dense<0> : tensor<1xi64>}",
            "scatter_dimension_numbers = #stablehlo.scatter<index_vector_dim = 1,"
            " scatter_dims_to_operand_dims = [0]>",
        ),
    ],
)
def test_mhlo_becomes_stablehlo(old: str, new: str) -> None:
    assert port(old) == new


@pytest.mark.parametrize(
    "text",
    [
        "func.func @f(%constant: i32) -> i32 {",
        "  // func @f() { %0 = constant 1 : i32",
        '%0 = "mhlo.fusion"(%a) : (T) -> T',  # MHLO's own: StableHLO has no such operation
        "%0 = tensor.expand_shape %x [[0, 1]] : tensor<?xf32> into tensor<?x2xf32>",
        "%0 = tensor.expand_shape %x [[0, 1]] output_shape [2, 4] : tensor<8xf32> into tensor<2x4xf32>",
        "%0 = vector.extract %v[0] : f32 from vector<4xf32>",
        "%0 = linalg.fill(%a, %b) : tensor<2xf32>, tensor<2xf32> -> tensor<2xf32>",  # which one is the output?
        "func.func @f() attributes {mhlo.num_partitions = 1 : i32} {",
        "%0 = linalg.conv_1d {strides = dense<1> : tensor<1xi64>} ins(%a, %b : T, T) outs(%c : T)",
        "stablehlo.convolution(%a, %k) window = {stride = [2, 2]} : (T, U) -> V",
        "%0 = vector.extractelement %v[%i : i32] : vector<4xf16>",  # the index would need a cast
        'dimension_numbers = {input_batch_dimension = 0 : i64, more = "?"}',
        "%0 = linalg.indexed_generic #missing ins(%a : T) {\n^bb0(%i: index, %x: i8):",
        'value = dense<[1, 2]> : tensor<2xi64>, name = "dim"',
    ],
)
def test_texts_that_need_no_change_or_more_than_they_say_stay(text: str) -> None:
    """A release then refuses the text; nothing else than the text is run."""
    assert port_notations(text, NEWEST) == (text, ())


_BINDINGS = """\
#layout = #hal.pipeline.layout<push_constants = 1, sets = [
  <0, bindings = [<0, storage_buffer, ReadOnly>, <1, storage_buffer>]>]>
%0 = hal.interface.binding.subspan layout(#layout) set(0) binding(1) : T
%1 = hal.interface.binding.subspan set(0) binding(0) type(storage_buffer) offset(%c) : T
"""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("%0 = iree_linalg_ext.softmax dimension(0) ins(", "%0 = linalg.softmax dimension(0) ins("),
        (
            "%0 = iree_linalg_ext.unpack %a inner_tiles = [2] into %b"
            " : (tensor<4x2xi8> tensor<8xi8>) -> tensor<8xi8>",
            "%0 = linalg.unpack %a inner_tiles = [2] into %b : tensor<4x2xi8> -> tensor<8xi8>",
        ),
        ("flow.variable @v 3 : i32", "util.global private @v = 3 : i32"),
        ("flow.variable @v mutable : tensor<2xi8>", "util.global private mutable @v : tensor<2xi8>"),
        ("%0 = hal.variable.load @v : i32", "%0 = util.global.load @v : i32"),
        (
            "%0 = iree.dynamic_shape_constant dense<1> : tensor<2xi8> -> tensor<?xi8>",
            "%0 = flow.tensor.dynamic_constant dense<1> : tensor<2xi8> -> tensor<?xi8>",
        ),
        ("!flow.dispatch.tensor<writeonly:?x4xi8>", "!flow.dispatch.tensor<writeonly:tensor<?x4xi8>>"),
        ("translation_info = <CPUDefault>", "translation_info = <pipeline = #iree_cpu.pipeline<Default>>"),
        (
            "#iree_codegen.translation_info<LLVMGPUVectorize>",
            "#iree_codegen.translation_info<pipeline = #iree_gpu.pipeline<Vectorize>>",
        ),
        (
            _BINDINGS,
            "#layout = #hal.pipeline.layout<constants = 1, bindings = [#hal.pipeline.binding<storage_buffer,"
            " ReadOnly>, #hal.pipeline.binding<storage_buffer>]>\n\n"
            "%0 = hal.interface.binding.subspan layout(#layout) binding(1) : T\n"
            "%1 = hal.interface.binding.subspan layout(#layout) binding(0) offset(%c) : T\n",
        ),
    ],
)
def test_operations_of_iree(old: str, new: str) -> None:
    assert port(old) == new


def test_a_notation_stays_on_the_releases_that_read_it() -> None:
    text = "%0 = linalg.matmul_transpose_b ins(%a, %b : T, U) outs(%c : V) -> V"
    assert port_notations(text, "3.6.0") == (text, ())


def test_changes_name_their_lines_and_no_line_moves() -> None:
    """An operation over two lines is changed where it begins. Comments keep their places."""
    text = (
        "func @f() {  // func @g\n  %0 = tensor.expand_shape %x [[0, 1]]\n    : tensor<4xf32> into tensor<2x2xf32>\n}"
    )
    ported, changes = port_notations(text, NEWEST)
    assert ported.split("\n")[0] == "func.func @f() {  // func @g"
    assert ported.count("\n") == text.count("\n")
    assert [change.line for change in changes] == [1, 2]


@given(st.text(alphabet='%a=mhlo.func@ ()<>[]{}:"x1,\n/', max_size=120))
def test_a_ported_text_is_not_ported_again(text: str) -> None:
    """A second port changes nothing, for any text."""
    once = port(text)
    assert port(once) == once


TO = "(tensor<2x3xf32>) -> tensor<3x2xf32>"
ORDER = '  %p = "tosa.const"() {value = dense<[1, 0]> : tensor<2xi32>} : () -> tensor<2xi32>\n'


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (
            f"%4 = tosa.reshape %x {{new_shape = [3, 2]}} : {TO}",
            '%tosa_4_new_shape = "tosa.const_shape"() {values = dense<[3, 2]> : tensor<2xindex>}'
            " : () -> !tosa.shape<2>"
            ' %4 = "tosa.reshape"(%x, %tosa_4_new_shape) : (tensor<2x3xf32>, !tosa.shape<2>) -> tensor<3x2xf32>',
        ),
        (
            '%m = "tosa.mul"(%x, %y) <{shift = 3 : i32}> : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi32>',
            '%tosa_m_shift = "tosa.const"() {values = dense<3> : tensor<1xi8>} : () -> tensor<1xi8>'
            ' %m = "tosa.mul"(%x, %y, %tosa_m_shift) : (tensor<2xi32>, tensor<2xi32>, tensor<1xi8>) -> tensor<2xi32>',
        ),
        (
            "%c = tosa.clamp %x {min_fp = 0.0 : f32, max_fp = 6.0 : f32, min_int = 0 : i64, max_int = 6 : i64}"
            " : (tensor<2xi8>) -> tensor<2xi8>",
            '%c = "tosa.clamp"(%x) {min_val = 0 : i8, max_val = 6 : i8} : (tensor<2xi8>) -> tensor<2xi8>',
        ),
        (
            f'{ORDER}  %t = "tosa.transpose"(%x, %p) : (tensor<2x3xf32>, tensor<2xi32>) -> tensor<3x2xf32>',
            f'{ORDER.replace("value", "values")}  %t = "tosa.transpose"(%x) {{perms = array<i32: 1, 0>}} : {TO}',
        ),
        (
            '%r = "tosa.reduce_max"(%x) {axis = 1 : i64} : (tensor<2x3xf32>) -> tensor<2x1xf32>',
            '%r = "tosa.reduce_max"(%x) {axis = 1 : i32} : (tensor<2x3xf32>) -> tensor<2x1xf32>',
        ),
        (
            '%q = "tosa.avg_pool2d"(%x) {kernel = [2, 2], pad = [0, 0, 0, 0], stride = [2, 2],'
            " quantization_info = #tosa.unary_quant<input_zp = 5, output_zp = -1>}"
            " : (tensor<1x4x4x3xi8>) -> tensor<1x2x2x3xi8>",
            '%tosa_q_input_zp = "tosa.const"() {values = dense<5> : tensor<1xi8>} : () -> tensor<1xi8>'
            ' %tosa_q_output_zp = "tosa.const"() {values = dense<-1> : tensor<1xi8>} : () -> tensor<1xi8>'
            ' %q = "tosa.avg_pool2d"(%x, %tosa_q_input_zp, %tosa_q_output_zp) {kernel = array<i64: 2, 2>,'
            " pad = array<i64: 0, 0, 0, 0>, stride = array<i64: 2, 2>, acc_type = i32}"
            " : (tensor<1x4x4x3xi8>, tensor<1xi8>, tensor<1xi8>) -> tensor<1x2x2x3xi8>",
        ),
    ],
)
def test_attributes_of_tosa_become_operands(old: str, new: str) -> None:
    assert port(old) == new
    assert port(new) == new


@pytest.mark.parametrize(
    "text",
    [
        f'%t = "tosa.transpose"(%x, %order) : (tensor<2x3xf32>, tensor<2xi32>) -> tensor<3x2xf32> // {ORDER}',
        '%c = "tosa.clamp"(%x) {max_fp = 3.4e38 : f32, min_fp = 0.0 : f32} : (tensor<2xf16>) -> tensor<2xf16>',
        f'%4 = "tosa.reshape"(%x, %shape) : {TO}',
        '%m = "tosa.matmul"(%x, %x) : (tensor<1x2x2x!quant.any<i8:f32>>, tensor<1x2x2xi8>) -> tensor<1x2x2xi32>',
        "%0 = stablehlo.concatenate %a, %b, dim = 0 : T\n  {axis = 0 : i64}",
    ],
)
def test_what_tosa_does_not_tell_stays(text: str) -> None:
    """An order that is no constant, bounds beyond the type, other types."""
    assert port(text) == text


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (
            '  hal.executable.variant public @v, target = <"llvm-cpu", "elf", {cpu = "", list = #a<b<1>>}> {',
            '  hal.executable.variant public @v target(<"llvm-cpu", "elf", {cpu = "", list = #a<b<1>>}>) {',
        ),
        (
            "%0 = hal.interface.constant.load[1] : i32",
            "%0 = hal.interface.constant.load layout(#hal.pipeline.layout<constants = 2, bindings = []>)"
            " ordinal(1) : i32",
        ),
        (
            "  hal.executable.export public @d ordinal(0) layout(#l) {\n  ^bb0(%d: !hal.device, %n: index):\n"
            "    %x, %y, %z = flow.dispatch.workgroup_count_from_dag_root %n",
            "  hal.executable.export public @d ordinal(0) layout(#l)"
            " count(%d: !hal.device, %n: index) -> (index, index, index) {\n\n"
            "    %x, %y, %z = iree_tensor_ext.dispatch.workgroup_count_from_slice(%n)",
        ),
        (
            "%0 = bufferization.to_tensor %m : memref<4xi8>",
            "%0 = bufferization.to_tensor %m : memref<4xi8> to tensor<4xi8>",
        ),
        (
            "%0 = bufferization.to_memref %t : memref<?xi8>",
            "%0 = bufferization.to_buffer %t : tensor<?xi8> to memref<?xi8>",
        ),
        ("%v, %i = mhlo.topk(%x, k = 3, largest = true) : T", "%v, %i = chlo.top_k(%x, k = 3) : T"),
        (
            '%e = "mhlo.erf"(%x) : (tensor<2xf16>) -> tensor<2xf16>',
            "%e = chlo.erf %x : tensor<2xf16> -> tensor<2xf16>",
        ),
        ("%0 = iree_input.cast.buffer_view_to_tensor %v : T", "%0 = hal.tensor.import %v : T"),
    ],
)
def test_operations_of_executables_and_of_early_frontends(old: str, new: str) -> None:
    assert port(old) == new


def test_tosa_attributes_behind_the_operands_are_read_by_every_release_in_the_general_form() -> None:
    """3.13.0 has them in front of the colon. Enumerations were strings, then words."""
    old = '%0 = tosa.resize %a, %s, %o, %b {mode = "NEAREST_NEIGHBOR"} : (T, U, V, V) -> W'
    new = '%0 = "tosa.resize"(%a, %s, %o, %b) {mode = #tosa.resize_mode<NEAREST_NEIGHBOR>} : (T, U, V, V) -> W'
    assert port(old) == new
    assert port(old.replace('"NEAREST_NEIGHBOR"', "NEAREST_NEIGHBOR")) == new
    assert port_notations(old, "3.6.0")[0] == old
    plain = "%0 = tosa.maximum %a, %b : (T, T) -> T"
    assert port(plain) == plain
    assert port('%0 = stablehlo.custom %a {mode = "CLAMP"} : T') == '%0 = stablehlo.custom %a {mode = "CLAMP"} : T'


@pytest.mark.parametrize(
    "text",
    [
        '%0 = "tosa.fully_connected"(%a, %w, %b) : (tensor<?x3xf32>, tensor<4x3xf32>, tensor<4xf32>) -> T',
        '%0 = "tosa.rescale"(%a) {multiplier = array<i32: 1>, shift = array<i8: 1>} : (tensor<4xi8>) -> tensor<4xi8>',
        '%0 = "tosa.resize"(%a) {output_size = array<i64: 8, 8>} : (tensor<1x4x4x1xf32>) -> tensor<1x8x8x1xf32>',
    ],
)
def test_an_operation_of_tosa_that_lacks_what_its_later_form_needs_stays(text: str) -> None:
    """A dynamic dimension has no constant shape; without the scale, the rounding is unknown."""
    assert port(text) == text


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (
            "%r = iree_linalg_ext.attention {indexing_maps = [#q, #k,\n #v]}\n ins(%a : T)",
            "%r = iree_linalg_ext.attention <{indexing_maps = [#q, #k,\n #v]}>\n ins(%a : T)",
        ),
        (
            "%r = iree_linalg_ext.online_attention\n {indexing_maps = [#q]}\n ins(%a : T)",
            "%r = iree_linalg_ext.online_attention\n <{indexing_maps = [#q]}>\n ins(%a : T)",
        ),
        (
            "%r = iree_linalg_ext.attention {indexing_maps = [#q], lowering_config = #c<{a = [1]}>} ins(%a : T)",
            "%r = iree_linalg_ext.attention <{indexing_maps = [#q]}> {lowering_config = #c<{a = [1]}>} ins(%a : T)",
        ),
        (
            "%0 = iree_codegen.inner_tiled ins(%l, %r)\n outs(%a) {\n indexing_maps = [#m],\n kind = #k<X>\n } : T",
            "%0 = iree_codegen.inner_tiled ins(%l, %r)\n outs(%a) <{indexing_maps = [#m], kind = #k<X>}>\n\n\n : T",
        ),
        (
            "hal.executable.export public @e ordinal(0) layout(#l) attributes {workgroup_size = [1 : index]}",
            "hal.executable.export public @e ordinal(0) layout(#l) <{workgroup_size = [1 : index]}>",
        ),
        ("  } attributes {subgroup_size = 64 : index}", "  } <{subgroup_size = 64 : index}>"),
        ("util.global private @g {inlining_policy = #p} = 5", "util.global private @g <{inlining_policy = #p}> = 5"),
        ("%m = linalg.max ins(%a, %b : T, T)", "%m = linalg.elementwise <max_signed> ins(%a, %b : T, T)"),
        ("linalg.elementwise kind=#linalg.elementwise_kind<exp> ins(%a", "linalg.elementwise <exp> ins(%a"),
    ],
)
def test_own_attributes_have_brackets_of_their_own_from_3_13_on(old: str, new: str) -> None:
    assert port(old) == new
    assert port_notations(old, "3.12.0") == (old, ())


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (
            "memref.alloc(%n) {alignment = 64 : i64} : memref<?xf32>",
            "memref.alloc(%n) alignment = 64 : memref<?xf32>",
        ),
        ("memref.alloc() {a.b, alignment = 64 : i64} : T", "memref.alloc() alignment = 64 {a.b} : T"),
        (
            "memref.load %m[%i] {nontemporal = true, alignment = 8 : i64} : T",
            "memref.load %m[%i] alignment(8) nontemporal(true) : T",
        ),
        ("vector.store %v, %m[%i] {alignment = 16 : i64} : T, U", "vector.store %v, %m[%i] alignment = 16 : T, U"),
        (
            "#iree_codegen.translation_info<pipeline = CPUDefault, {x}>",
            "#iree_codegen.translation_info<pipeline = #iree_cpu.pipeline<Default>, {x}>",
        ),
        (
            "translation_info = #iree_codegen.translation_info<pipeline = LLVMGPUTileAndFuse workgroup_size = [64]>",
            "translation_info = #iree_codegen.translation_info<pipeline = #iree_gpu.pipeline<TileAndFuse>"
            " workgroup_size = [64]>",
        ),
        ("translation_info<pipeline = None>", "translation_info<pipeline = #iree_codegen.no_pipeline>"),
        (
            "vector.extract_strided_slice %v {sizes = [1], offsets = [0], strides = [1]} : T to U",
            "vector.extract_strided_slice %v offsets = [0], sizes = [1], strides = [1] : T to U",
        ),
    ],
)
def test_accesses_to_memory_and_slices_have_words_of_their_own_from_3_12_on(old: str, new: str) -> None:
    assert port(old) == port_notations(old, "3.12.0")[0] == new
    assert port_notations(old, "3.11.0") == (old, ())


@pytest.mark.parametrize(
    "text",
    [
        "func.func @f() attributes {workgroup_size = [1]} {",
        "memref.load %m[%i] {my.mark} : memref<4xf32>",
        'transform.structured.match ops{["linalg.add"]} in %a',
        "iree_linalg_ext.attention <{indexing_maps = [#q]}> {lowering_config = #c} ins(%a : T)",
        "memref.alloc() alignment = 64 {a.b} : T",
        "hal.executable.export public @e ordinal(0) layout(#l) attributes {my.mark = {a = 1}}",
    ],
)
def test_attributes_that_anyone_may_add_stay(text: str) -> None:
    assert port(text) == text


@pytest.mark.parametrize(
    ("old", "first"),
    [
        ("func @f() {", "20230209.425"),
        ("%0 = linalg.init_tensor [4] : tensor<4xf32>", "20230209.425"),
        ("%0 = iree.unfoldable_constant dense<1> : tensor<2xi32>", "20230209.425"),
        ("%m = arith.maxf %a, %b : f32", "20231004.665"),
        ("%2 = tensor.expand_shape %x [[0, 1]] : tensor<8xi8> into tensor<2x4xi8>", "20240621.931"),
    ],
)
def test_builds_of_2023_and_2024_get_the_notations_that_they_read(old: str, first: str) -> None:
    """A build before ``first`` reads the old notation, and refuses the new one."""
    assert port_notations(old, first)[0] != old
    if first != "20230209.425":
        assert port_notations(old, "20230815.614")[0] == old
