"""Choose the Python blocks of a testcase, and repair them."""

from __future__ import annotations

import pytest

from bot.issue import Comment
from runners.core.protocol import Signature
from tests.bot.extract.reading import extract_no_repro, extract_repro, list_missing, list_repairs


def extract_code(body: str, title: str = "[Bug] tvm fails") -> str:
    return extract_repro(body, title).testcase.files["repro.py"]


def test_a_module_and_the_script_that_uses_it_are_joined() -> None:
    """Two blocks that need each other are one testcase, without the library source quoted above them."""
    found = extract_repro(
        """
        The compiler has

        ```python
        @register_legalize("relax.nn.silu")  # shortened
        def legalize_silu(bb, call):
            return call
        ```

        My module:

        ```python
        import tvm
        from tvm.script import ir as I, relax as R

        @I.ir_module
        class Net:
            @R.function
            def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
                return R.nn.silu(x)
        ```

        and how I build it:

        ```python
        lib = tvm.compile(Net, target="llvm")
        ```
        """
    )
    text = found.testcase.files["repro.py"]
    assert "register_legalize" not in text
    assert text.index("class Net") < text.index("lib = tvm.compile(Net")
    assert list_repairs(found) == ["join-blocks"]
    assert [span.block for span in found.spans] == [2, 3]
    assert not found.missing


def test_only_well_known_imports_are_added() -> None:
    """Any other undefined name is missing."""
    found = extract_repro("```\nx = np.zeros(3)\nvm = relax.VirtualMachine(build_it(x), tvm.cpu())\n```\n")
    assert [r.detail for r in found.repairs] == ["import numpy as np", "import tvm", "from tvm import relax"]
    assert list_missing(found) == [("name", "build_it")]


def test_imports_go_behind_the_docstring_and_future_imports() -> None:
    """In any other place, the added line would change the meaning of the file."""
    text = extract_code('```python\n"""doc"""\nfrom __future__ import annotations\nprint(tvm.nd)\n```\n')
    assert text.split("\n")[:3] == ['"""doc"""', "from __future__ import annotations", "import tvm"]


def test_output_below_the_code_in_one_fence_is_cut_off() -> None:
    """The prompt and the traceback are not code."""
    found = extract_repro(
        """
        ```[py]
        import tvm
        print(tvm.nothing)

        $ python a.py
        Traceback (most recent call last):
          File "a.py", line 2, in <module>
        AttributeError: module 'tvm' has no attribute 'nothing'
        ```
        """
    )
    assert found.testcase.files["repro.py"] == "import tvm\nprint(tvm.nothing)\n"
    assert found.spans[0].lines == (2, 3)
    assert found.claim.signature is not None
    assert found.claim.signature.type == "AttributeError"


def test_an_interactive_session_becomes_its_code() -> None:
    """Prompts and output are left out, and a repair says so."""
    found = extract_repro("```\n>>> import tvm\n>>> def f():\n...     return 1\n...\n>>> f()\n1\n```\n")
    assert found.testcase.files["repro.py"] == (
        'import tvm\ndef f():\n    return 1\n\n__import__("sys").displayhook(f())\n'
    )
    assert list_repairs(found) == ["strip-prompt", "echo-value"]


def test_a_session_shows_each_expression_of_a_row() -> None:
    found = extract_repro("```\n>>> import tvm\n>>> x = tvm.f()\n>>> x.run(); x.numpy()  # twice\narray([1])\n```\n")
    shows = '__import__("sys").displayhook'
    row = f"{shows}(x.run()); {shows}(x.numpy())  # twice\n"
    assert found.testcase.files["repro.py"] == f"import tvm\nx = tvm.f()\n{row}"


def test_a_session_in_the_prose_is_read_like_one_in_a_fence() -> None:
    """Markdown takes the prompts for quotations. What the session shows is no expectation, whatever stands above."""
    found = extract_repro(
        """
        The mean is wrong, it should be 1.25.

        >>> import tvm
        >>> out = tvm.mean(
        ...     [5, 0])
        >>> out
        array(1)
        >>> print(out)
        1

        version 0.27.0
        """,
        "integer mean truncates",
    )
    shown = '__import__("sys").displayhook(out)'
    assert found.testcase.files["repro.py"] == f"import tvm\nout = tvm.mean(\n    [5, 0])\n{shown}\nprint(out)\n"
    assert (found.claim.actual, found.claim.expected) == ("array(1)\n1", "1.25")


def test_code_without_any_fence_is_found() -> None:
    """The code reaches from the first import to the last statement, without the sentences around it."""
    found = extract_repro(
        """
        I installed the wheel and ran

        import tvm
        from tvm import relax

        mod = relax.nothing(1)
        print(mod)

        AttributeError: module 'tvm.relax' has no attribute 'nothing'

        Is that gone? Thanks
        """
    )
    assert found.testcase.files["repro.py"].endswith("print(mod)\n")
    assert (found.spans[0].block, found.spans[0].lines) == (0, (3, 7))


def test_code_under_a_repro_heading_needs_no_import() -> None:
    """The code has no fence, and Markdown takes its comment for a heading."""
    found = extract_repro(
        "### Steps to reproduce\n\n# a variable\nn = tvm.tir.Var('n', 'int64')\nf = n + tvm.tir.const(1)\nf\n"
    )
    assert "n = tvm.tir.Var" in found.testcase.files["repro.py"]


def test_changes_by_markdown_and_editors_are_undone() -> None:
    """Typographic quotes, entities and common indentation are repaired only where the code needs it."""
    assert list_repairs(extract_repro("```python\nimport tvm\nprint(“a”)\n```\n")) == ["straighten-quotes"]
    assert list_repairs(extract_repro("```python\nimport tvm\nif 1 &lt; 2: print(tvm)\n```\n")) == ["unescape"]
    assert list_repairs(extract_repro("```python\n  import tvm\n  print(tvm)\n```\n")) == ["dedent"]
    assert list_repairs(extract_repro('```python\nimport tvm\nprint("“&lt;”")\n```\n')) == []


def test_entry_functions_without_a_call_are_called() -> None:
    """A file of definitions alone would not show the failure."""
    found = extract_repro("```python\nimport tvm\ndef main():\n    tvm.x()\n```\n")
    assert found.testcase.files["repro.py"].endswith("\n\nmain()\n")
    assert [(r.kind, r.detail) for r in found.repairs] == [("call-main", "main()")]


def test_parts_that_the_text_does_not_give_are_missing() -> None:
    """Files, private modules, constants that TVMScript leaves out, and elided bodies are missing."""
    found = extract_repro(
        """
        ```python
        import onnx, tvm
        from our_lib.passes import Fuse

        def convert(m):
            ...

        m = onnx.load("net/model.onnx")
        c = metadata["relax.expr.Constant"][0]
        print(Fuse()(convert(m)), c)
        ```
        """
    )
    assert set(list_missing(found)) == {
        ("module", "our_lib.passes"),
        ("file", "net/model.onnx"),
        ("code", 'metadata["relax.expr.Constant"]'),
        ("code", "the body of convert"),
    }
    assert found.testcase.requirements == ("onnx",)


def test_a_passage_of_printed_ir_is_no_part_of_a_complete_program() -> None:
    """It uses a name of the program by chance, and names that nothing defines."""
    program = "import tvm\nfrom tvm import te\ni = te.var('i')\nf = tvm.build(i)\nf.show()\n"
    printed = "for d, e in T.grid(4, i):\n    tri_sum[d] = tri_sum[d] + x[e, d]\n"
    code = extract_code(f"```python\n{program}```\n\nIn the printed TIR:\n\n```\n{printed}```\n")
    assert code == program


def test_the_variant_that_works_is_a_control() -> None:
    """Of two whole scripts, the one said to work is kept beside the testcase."""
    found = extract_repro(
        """
        This works fine:

        ```python
        import tvm
        tvm.compile(1, target="llvm")
        ```

        This fails:

        ```python
        import tvm
        tvm.compile(1, target="c")
        ```
        """
    )
    assert 'target="c"' in found.testcase.files["repro.py"]
    assert 'target="llvm"' in found.controls[0].files["repro.py"]


def test_two_unrelated_programs_are_refused_with_their_lines() -> None:
    """Guessing would give a wrong verdict for one of them."""
    found = extract_no_repro(
        """
        ```python
        import tvm
        a = tvm.tir.Var("a", "int32")
        print(a + 1)
        ```

        ```python
        from tvm import te
        p = te.placeholder((2, 3), name="p")
        q = te.compute((2, 3), lambda i, j: p[i, j])
        te.create_prim_func([p, q]).show()
        ```
        """,
        "[Bug] tvm does odd things",
    )
    assert "two unrelated programs" in found.reason
    assert "line 2" in found.reason


def test_a_session_beside_a_whole_script_looks_closer() -> None:
    """Whichever stands first."""
    script = "```python\nimport tvm\nb = tvm.runtime.tensor([1, 2])\nprint(b.numpy())\n```\n"
    session = "```\n>>> from tvm import tirx\n>>> y = tirx.Var('y', 'int32')\n>>> tirx.analysis.bound(y)\n3\n```\n"
    for body in (f"{script}\nI think I found the place:\n\n{session}", f"{session}\nAs it came up:\n\n{script}"):
        found = extract_repro(body, "[Bug] tvm is wrong")
        assert "tvm.runtime.tensor([1, 2])" in found.testcase.files["repro.py"]
        assert "tirx" not in found.testcase.files["repro.py"]


def test_a_session_and_the_same_as_a_script_are_one_program() -> None:
    """The script asks nothing else of the compiler. The session says which build it ran on."""
    found = extract_repro(
        """
        ```
        >>> import tvm
        >>> tvm.__version__
        '0.25.0'
        >>> echo = tvm.get_global_func("testing.echo")
        >>> echo(2**63)
        OverflowError: Python int too large to convert to C long
        ```

        As script:

        ```python
        import tvm

        echo = tvm.get_global_func("testing.echo")
        for v in (0, 2**63):
            r = echo(v)
            print(v, "->", r)
        ```
        """,
        "OverflowError for 2**63",
    )
    assert found.testcase.files["repro.py"].count("echo(v)") == 1
    assert found.claim.versions == ("0.25.0",)


def test_the_title_decides_between_two_programs() -> None:
    """The program that shares the words of the claim is the testcase."""
    body = """
        ```python
        import tvm
        a = tvm.tir.Var("a", "int32")
        print(a + 1)
        ```

        ```python
        from tvm import te
        p = te.placeholder((2, 3), name="p")
        q = te.compute((2, 3), lambda i, j: p[i, j])
        te.create_prim_func([p, q]).show()
        ```
        """
    assert "create_prim_func" in extract_code(body, "[Bug] create_prim_func of a placeholder and compute fails")


def test_without_code_in_the_description_the_authors_comments_are_read() -> None:
    """Comments of other people are not read."""
    comments = (
        Comment(author="helper", body="```python\nimport tvm\nprint('theirs')\n```\n"),
        Comment(author="reporter", body="sorry:\n\n```python\nimport tvm\nprint('mine')\n```\n"),
    )
    found = extract_repro("It fails.\n", comments=comments)
    assert "mine" in found.testcase.files["repro.py"]
    assert (found.spans[0].comment, found.spans[0].lines) == (1, (4, 5))


def test_an_issue_without_code_has_a_reason() -> None:
    """The reason may be shown to the reporter."""
    assert "no code" in extract_no_repro("It fails, see the picture.\n").reason
    assert "which compiler" in extract_no_repro("It fails.\n", "broken").reason


def test_notebook_magics_and_marks_of_omission_are_left_out() -> None:
    """A repair records each. A testcase with omitted code is incomplete."""
    found = extract_repro(
        "```python\n%matplotlib inline\n!pip install apache-tvm\nimport tvm\ntvm.a()\n<snip>\ntvm.b()\n```\n"
    )
    assert found.testcase.files["repro.py"] == "import tvm\ntvm.a()\ntvm.b()\n"
    assert list_repairs(found) == ["drop-magic", "drop-magic", "elision"]
    assert list_missing(found) == [("code", "the code that '<snip>' stands for")]


def test_definitions_that_nothing_uses_need_their_driver() -> None:
    """Definitions alone do not show a failure, unless the script parser refuses them."""
    body = """
    ```python
    from tvm.script import ir as I, relax as R

    @I.ir_module
    class M:
        @R.function
        def main(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
            return x
    ```
    """
    assert list_missing(extract_repro(body, "tvm: FuseOps crashes on this")) == [
        ("code", "the code that uses these definitions")
    ]
    refused = body + "\n    ```\n    error: odd annotation\n     --> m.py:6:9\n    ```\n"
    assert list_missing(extract_repro(refused, "tvm: parser error")) == []


@pytest.mark.parametrize(
    ("words", "whole"),
    [
        ("The import of tvm aborts.", True),
        ("Compiling aborts.", False),
        ("Importing tvm kills Python with a segmentation fault.", True),
        ("`import tvm` dies with `OSError: libz.so: cannot open shared object file`.", True),
        ("It fails at import with a segmentation fault.", True),
        ("The ONNX model should be imported. `from_onnx` raises `NotImplementedError: no 5D`.", False),
        ("Loading the model crashes with a segmentation fault.", False),
    ],
)
def test_imports_alone_are_a_testcase_only_if_an_import_fails(words: str, whole: bool) -> None:
    """Else the text broke off behind them, and a clean run would say nothing."""
    found = extract_repro(f"{words}\n\n```python\nimport tvm\nfrom tvm.relax.frontend.onnx import from_onnx\n```\n")
    assert (not found.missing) is whole


def test_a_traceback_through_the_body_of_a_module_is_one_of_an_import() -> None:
    report = """
        ```
        >>> import tvm
        >>> from tvm import relax
        Traceback (most recent call last):
          File "<stdin>", line 1, in <module>
          File "/venv/lib/python3.11/site-packages/tvm/relax/__init__.py", line 8, in {where}
            register("op")
        RuntimeError: op is registered already
        ```
        """
    assert list_missing(extract_repro(report.format(where="<module>"))) == []
    assert list_missing(extract_repro(report.format(where="compile"))) == [
        ("code", "the code that follows the imports")
    ]


def test_a_docstring_with_prompts_is_not_a_session() -> None:
    """Code that parses stays as it is."""
    text = extract_code('```python\nimport tvm\ndef f():\n    """\n    >>> f()\n    """\nf()\n```\n')
    assert ">>> f()" in text


def test_submodules_of_the_toolchain_may_need_distributions() -> None:
    """``import tvm.testing`` fails in a bare environment: it imports pytest."""
    found = extract_repro(
        "```python\nimport tvm.testing\nfrom tvm.relax.frontend.torch import from_fx\nprint(tvm)\n```\n"
    )
    assert found.testcase.requirements == ("pytest", "torch")


def test_output_of_a_prompted_command_is_not_a_program() -> None:
    """A module printed by ``python dump.py`` is not the reporter's code."""
    found = extract_no_repro(
        """
        ```bash
        $ python dump.py
        @I.ir_module
        class Module:
            @R.function
            def main(x: R.Tensor((2,), "float32")):
                return x
        ```
        """
    )
    assert "output" in found.reason


def test_repairs_that_only_help_together_are_made_together() -> None:
    """Code copied through a wiki has typographic quotes, entities and tabs at once."""
    body = "```\nimport tvm\ndef f(n):\n\tx = “a”\n    y = n\n\treturn x\nif 1 &gt; 0:\n    f(2)\n```\n"
    assert sorted(list_repairs(extract_repro(body))) == ["expand-tabs", "straighten-quotes", "unescape"]


def test_a_module_of_the_issue_that_the_script_imports_is_a_second_file() -> None:
    """The name stands above the block or in its first line."""
    found = extract_repro(
        """
        ```python
        # net.py
        from tvm.script import ir as I

        @I.ir_module
        class Net:
            pass
        ```

        main.py:

        ```python
        import tvm
        from net import Net
        tvm.compile(Net, target="llvm")
        ```
        """
    )
    assert set(found.testcase.files) == {"repro.py", "net.py"}
    assert not found.missing
    assert {span.file: span.block for span in found.spans} == {"repro.py": 2, "net.py": 1}


def test_the_imports_of_a_second_file_count() -> None:
    """Its distributions are installed too, and its unknown modules are missing."""
    found = extract_repro(
        """
        ```python
        # net.py
        import onnx
        import private_net

        def load():
            return onnx.load_model_from_string(private_net.TEXT)
        ```

        main.py:

        ```python
        import tvm
        import net
        tvm.compile(net.load(), target="llvm")
        ```
        """
    )
    assert set(found.testcase.files) == {"repro.py", "net.py"}
    assert found.testcase.requirements == ("onnx",)
    assert list_missing(found) == [("module", "private_net")]


def test_the_import_of_tir_depends_on_the_age_of_the_report() -> None:
    """A comment of the printed module decides, else the version or date: ``tirx`` from TVM 0.24 on."""
    body = "```python\n{header}@T.prim_func\ndef f(a: T.handle):\n    T.evaluate(0)\nprint(f)\n```\nTVM {version}\n"

    def line(header: str, version: str) -> str:
        found = extract_repro(body.format(header=header, version=version))
        return next(r.detail for r in found.repairs if r.detail.endswith(" as T"))

    assert line("# from tvm.script import tirx as T\n", "") == "from tvm.script import tirx as T"
    assert line("", "0.26.0") == "from tvm.script import tirx as T"
    assert line("", "0.17.dev0") == "from tvm.script import tir as T"


def test_a_passage_of_the_librarys_source_is_not_a_testcase() -> None:
    """A run of the passage would not show the failure."""
    extract_no_repro(
        """
        In `python/tvm/relax/backend/scan.py`, the kernel has:

        ```python
        @T.prim_func(private=True)
        def scan(a: T.handle, b: T.handle):
            rounds = T.Cast("int64", T.log2(T.float32(8)))
            ...
        ```
        """,
    )
    extract_no_repro(
        "The binding generator writes\n\n```\nfrom .._libs.runtime import _runtime\n```\n", "[Bug] tvm import"
    )


def test_a_program_given_to_python_c_is_a_testcase() -> None:
    """Of two such programs, the one with a traceback right below fails."""
    found = extract_repro(
        """
        ```shell
        ➜ python -c "import tvm; print(tvm.__version__)"
        0.26.0
        ```
        The same with the target is broken:
        ```shell
        ➜ python -c "import tvm.target; print(tvm.target.nothing)"
        Traceback (most recent call last):
        AttributeError: module 'tvm.target' has no attribute 'nothing'
        ```
        """,
    )
    assert found.testcase.files["repro.py"] == "import tvm.target; print(tvm.target.nothing)\n"
    assert [r.kind for r in found.repairs] == ["take-argument"]


@pytest.mark.parametrize("shown", ["\n\n```\n{command}\n```\n\n", "`{command}`"])
def test_the_program_that_a_command_gives_to_python_is_read_without_a_prompt(shown: str) -> None:
    command = 'python3 -c "import tvm; tvm.build(tvm.IRModule(), target=7)"'
    text = f"Run {shown.format(command=command)} and see:\n\n```\nTypeError: no such target\n```\n"
    found = extract_repro(text)
    assert found.testcase.files["repro.py"] == "import tvm; tvm.build(tvm.IRModule(), target=7)\n"


PLOTTED = """
    ```python
    import tvm
    import seaborn
    from matplotlib import pyplot as plt
    import matplotlib.cm as colours

    tvm.build(colours)
    ```
"""


def test_an_import_that_nothing_uses_and_no_testcase_may_install_is_left_out() -> None:
    """An unknown module, and a module that the code uses, stay. Rows keep their numbers."""
    found = extract_repro(PLOTTED)
    code = found.testcase.files["repro.py"]
    assert "pyplot" not in code
    assert "import matplotlib.cm as colours" in code
    assert "import seaborn" in code
    assert code.split("\n")[3] == "import matplotlib.cm as colours"
    assert "drop-import" in list_repairs(found)


def test_an_import_that_the_report_is_about_stays() -> None:
    """The import itself may be what fails."""
    assert "pyplot" in extract_code(PLOTTED, "[Bug] tvm crashes when matplotlib is imported")


EXCERPT = """
```python
import tvm
from tvm import te

A = te.placeholder((4,), name="A")
B = te.compute((4,), lambda i: A[i] * 2, name="B")
lib = tvm.compile(te.create_prim_func([A, B]), target=target)
data = tvm.runtime.tensor(numbers, dev)
```

It ends with `InternalError: cannot find the buffer`. {}
"""


def test_the_usual_target_is_assumed_where_only_its_name_is_missing() -> None:
    """Each assumption is listed, stands above the first use, and marks the device as assumed."""
    found = extract_repro(EXCERPT.format("").replace("numbers", "[1.0, 2.0, 3.0, 4.0]"))
    rows = found.testcase.files["repro.py"].split("\n")
    assert rows[rows.index('target = "llvm"') + 1].startswith("lib = ")
    assert rows[rows.index("dev = tvm.cpu()") + 1].startswith("data = ")
    assert not found.missing
    assert set(found.assumed) == {'target = "llvm"', "dev = tvm.cpu()"}
    assert found.assumed_device in found.assumed


def test_no_target_is_assumed_beside_words_of_another_device() -> None:
    """The report may mean a device that it names elsewhere."""
    for words in ("It happens on an A100.", "[GPU only]", "I use CUDA 12."):
        found = extract_repro(EXCERPT.format(words).replace("numbers", "[1.0]"))
        assert set(list_missing(found)) == {("name", "target"), ("name", "dev")}, words
        assert not found.assumed_device


NEEDS_DEVICE = """\
The values are wrong.

```python
import tvm
device = {}
data = tvm.runtime.empty((4,), "float32", device)
assert data.numpy().sum() == 0
```
"""


@pytest.mark.parametrize(
    ("call", "device"),
    [
        ('tvm.device("cuda", 0)', "cuda"),
        ("tvm.device('vulkan')", "vulkan"),
        ('tvm.runtime.device("gpu", 0)', "cuda"),
        ("tvm.cuda(0)", "cuda"),
        ('tvm.device("cpu")', "llvm"),
        ("tvm.device(str(tvm.target.Target.current()))", "llvm"),
    ],
)
def test_a_device_that_the_code_opens_is_the_device_of_the_testcase(call: str, device: str) -> None:
    """Without it, a program that opens the GPU and compiles nothing ran in a sandbox without the GPU."""
    assert extract_repro(NEEDS_DEVICE.format(call)).device == device


def test_other_names_are_missing_as_before() -> None:
    """Data of the reporter has no usual value."""
    assert list_missing(extract_repro(EXCERPT.format(""))) == [("name", "numbers")]


def test_a_test_function_is_the_program_and_the_text_that_it_prints_is_not() -> None:
    """The function is called, although words before it say that something is generated, and nothing else acts."""
    code = extract_code(
        """
        The generated script of a loop cannot be parsed again.

        ```
        import tvm
        from tvm.script import tir as T

        def test_roundtrip():
            script = make_loop().script()
            tvm.script.from_source(script)

        def make_loop():
            return tvm.tir.PrimFunc([], tvm.tir.Evaluate(0))
        ```

        This generates

        ```
        @T.prim_func
        def main():
            with T.let(count, 0):
                T.evaluate(0)
        ```
        """
    )
    assert code.rstrip().endswith("test_roundtrip()")
    assert "T.let" not in code


@pytest.mark.parametrize("called", ["c.compile_file", "compile_file", "iree.compiler.compile_file"])
@pytest.mark.parametrize("heading", ["`a.mlir`:", "Input:"])
def test_the_program_of_a_report_is_the_file_that_its_python_reads(called: str, heading: str) -> None:
    """By its name, or because nothing else can be meant. The function may have any name by which it is imported."""
    found = extract_repro(
        f"""
        {heading}
        ```mlir
        func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {{
          return %a : tensor<4xf32>
        }}
        ```
        ```python
        import iree.compiler
        import iree.compiler as c
        from iree.compiler import compile_file
        {called}("a.mlir", target_backends=["vmvx"])
        ```
        """,
        "compile_file crashes",
        "iree-org/iree",
    )
    assert not found.missing
    assert found.testcase.files["a.mlir"].startswith("func.func @f")


def test_a_version_at_the_end_of_a_cell_is_no_part_of_the_program() -> None:
    """The notebook shows it; leaving it out leaves out no code."""
    found = extract_repro(
        """
        In [1]:
        ```python
        import tvm
        from tvm import relax
        tvm.__version__
        ```
        In [2]:
        ```python
        relax.build(tvm.IRModule({}), "llvm")
        ```
        """
    )
    assert not any(repair.kind == "drop-code" for repair in found.repairs)


def test_a_definition_that_fails_when_it_runs_needs_no_driver() -> None:
    """A decorator of the compiler reads the definition, also where its import was left out of the report."""
    body = """
        Running the code I get an error:

        ```python
        @T.prim_func
        def main(A: T.Buffer((4,), "float32")):
            A[0] = T.alloc_buffer((4,))
        ```
        _ValueError: no frame to allocate in_
        """
    found = extract_repro(body)
    assert (list_missing(found), found.claim.signature) == (
        [],
        Signature(type="ValueError", message="no frame to allocate in"),
    )
    assert list_missing(extract_repro(body.replace("Running the code", "After tuning"))) != []


def test_a_script_that_writes_the_file_of_another_one_stands_before_it() -> None:
    """Otherwise the file would be asked for."""
    save = "```python\nimport tvm\nf = tvm.build(make(), name='add')\nf.export_library('{name}.so')\n```"
    load = "```python\nimport tvm\nf = tvm.runtime.load_module('add.so')\nf(1)\n```"
    body = "save.py:\n{save}\n\nload.py:\n{load}\n\nIt crashes at `load_module`."
    whole = save.format(name="add").replace("make()", "tvm.IRModule({})")
    code = extract_code(body.format(save=whole, load=load))
    assert code.index("export_library") < code.index("load_module")
    assert "load_module" not in extract_code(body.format(save=whole.replace("add.so", "sub.so"), load=load))


def test_indented_rows_right_below_words_belong_to_the_program() -> None:
    """Markdown counts them as words: only a blank row ends a paragraph."""
    body = """
        In this case it fails.

        #n = te.var('n')
            n = 17
            A = te.placeholder((n,), name='A')

            B = te.compute((n,), lambda i: A[i] + 1)
            print(tvm.compile(te.create_prim_func([A, B])))
        """
    assert extract_code(body).count("\n") >= 5
    assert "n = 17\n" in extract_code(body)
