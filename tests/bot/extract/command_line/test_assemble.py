"""Assemble MLIR and commands into files and steps."""

from __future__ import annotations

import textwrap

import pytest

from runners.core.failure.oracle import READ_BACK
from tests.bot.extract.reading import extract_no_repro, extract_repro, list_missing, list_repairs

MLIR = """\
    ```mlir
    func.func @twice(%a: tensor<4xf32>) -> tensor<4xf32> {
      %0 = arith.addf %a, %a : tensor<4xf32>
      return %0 : tensor<4xf32>
    }
    ```
"""
TITLE = "iree-compile crashes"


def test_paths_become_names_in_the_working_directory() -> None:
    """A step sees only its own directory. Every changed path is recorded."""
    found = extract_repro(
        f"{MLIR}\n    `/opt/iree/tools/iree-compile --compile-to=abi /tmp/d/twice.mlir -o ~/out/twice.mlirbc`\n",
        TITLE,
    )
    assert found.testcase.steps == (("iree-compile", "--compile-to=abi", "twice.mlir", "-o", "twice.mlirbc"),)
    assert set(found.testcase.files) == {"twice.mlir"}
    assert list_repairs(found) == ["bare-tool", "rewrite-path", "rewrite-path"]


@pytest.mark.parametrize("version", ["3.12.0rc20260712", "v3.8", "3.9.0+abc12"])
def test_a_tool_that_is_named_with_its_version_is_no_command(version: str) -> None:
    """The version would be asked for as a file."""
    found = extract_repro(
        f"    Seen with `iree-compile {version}`.\n\n{MLIR}\n    `iree-compile --x=y twice.mlir -o a.vmfb`\n", TITLE
    )
    assert [step[-3:] for step in found.testcase.steps] == [("twice.mlir", "-o", "a.vmfb")]
    assert not list_missing(found)


@pytest.mark.parametrize("name", ["%s", "-", "<input-file>", "$INPUT", ""])
def test_an_input_without_a_name_gets_one(name: str) -> None:
    """Placeholders and the standard input stand for the only MLIR of the issue."""
    found = extract_repro(f"{MLIR}\n    ```sh\n    iree-compile --x=y {name} -o a.vmfb\n    ```\n", TITLE)
    assert "input.mlir" in found.testcase.steps[0]
    assert list(found.testcase.files) == ["input.mlir"]
    assert "name-input" in list_repairs(found)


def test_a_lone_run_gets_the_compile_step_of_its_device() -> None:
    """The added step is recorded, and names the backend of the device in the run."""
    found = extract_repro(
        f"{MLIR}\n    ```\n    iree-run-module --device=vulkan --module=/tmp/t.vmfb --input=4xf32=1\n    ```\n", TITLE
    )
    assert found.testcase.steps == (
        ("iree-compile", "--iree-hal-target-backends=vulkan-spirv", "t.mlir", "-o", "t.vmfb"),
        ("iree-run-module", "--device=vulkan", "--module=t.vmfb", "--input=4xf32=1"),
    )
    assert "add-compile-step" in list_repairs(found)
    assert found.device == "vulkan"


@pytest.mark.parametrize("flag", ["--iree-hal-list-target-devices", "--show-dialects", "--iree-x86-list-chips"])
def test_a_call_that_prints_facts_about_the_compiler_needs_no_input(flag: str) -> None:
    found = extract_repro(f"It crashes at once.\n\n    ```sh\n    iree-compile {flag}\n    ```\n", TITLE)
    assert found.testcase.steps == (("iree-compile", flag),)
    assert not found.missing


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("The model: https://pastebin.com/Ab3dE6gH", ["file"]),
        ("The model is at https://drive.google.com/file/d/1aB2cD/view?usp=sharing.", ["file"]),
        ("The log: https://pastebin.com/Ab3dE6gH", ["code"]),
    ],
)
def test_a_program_on_another_host_is_asked_for(text: str, kinds: list[str]) -> None:
    """A log on such a host is no program."""
    body = f"{text}\n\n```\nerror: 'linalg.generic' op is not supported\n```\n"
    assert [kind for kind, _ in list_missing(extract_no_repro(body, TITLE, "iree-org/iree"))] == kinds


def test_a_compile_without_output_gets_one() -> None:
    """Without a name, the module's bytes would be printed."""
    found = extract_repro(
        f"{MLIR}\n    ```\n    $ iree-compile --iree-hal-target-backends=vmvx t.mlir\n    ```\n", TITLE
    )
    assert found.testcase.steps[0][-2:] == ("-o", "t.vmfb")
    assert list_repairs(found) == ["name-output"]


def test_a_pipe_becomes_steps_with_a_file_between() -> None:
    """No shell runs: the second program reads the output file of the first."""
    found = extract_repro(
        f"{MLIR}\n    ```\n    iree-opt --canonicalize t.mlir | iree-compile - -o t.vmfb\n    ```\n", TITLE
    )
    assert found.testcase.steps == (
        ("iree-opt", "--canonicalize", "t.mlir", "-o", "piped.mlir"),
        ("iree-compile", "piped.mlir", "-o", "t.vmfb"),
    )


@pytest.mark.parametrize("prompt", ["$", ">", "me@host:~/iree$"])
def test_prompts_code_and_output_in_one_fence_are_split(prompt: str) -> None:
    """``cat`` names the file, the commands are steps, and the rest is output."""
    found = extract_repro(
        """
        ```console
        $ cat twice.mlir
        func.func @twice(%a: tensor<4xf32>) -> tensor<4xf32> {
          return %a : tensor<4xf32>
        }
        $ iree-compile --iree-hal-target-backends=llvm-cpu twice.mlir -o t.vmfb
        twice.mlir:2:3: error: 'func.return' op is odd
          return %a : tensor<4xf32>
          ^
        ```
        """.replace("$", prompt),
        TITLE,
    )
    assert list(found.testcase.files) == ["twice.mlir"]
    assert found.testcase.files["twice.mlir"].endswith("}\n")
    assert found.claim.signature is not None
    assert found.claim.signature.type == "mlir-error"
    assert found.spans[0].lines == (3, 5)


def test_a_heredoc_is_the_file_it_writes() -> None:
    """``cat > f <<EOF`` gives both a name and a text."""
    found = extract_repro(
        """
        ```bash
        cat <<'EOF' > /tmp/h.mlir
        func.func @h() {
          return
        }
        EOF
        iree-opt /tmp/h.mlir
        ```
        """,
        TITLE,
    )
    assert found.testcase.files == {"h.mlir": "func.func @h() {\n  return\n}\n"}


@pytest.mark.parametrize(
    "command",
    [
        "echo 'module @m { }' | iree-opt --cse",
        'echo "module @m { }" | iree-opt --cse -',
        "$ printf 'module @m { }' | iree-opt - --cse",
        "iree-opt --cse <<< 'module @m { }'",
        "echo 'module @m { }' | \\\n        iree-opt --cse",
    ],
)
def test_text_that_a_command_is_given_is_its_input(command: str) -> None:
    found = extract_repro(f"\n        ```bash\n        {command}\n        ```\n        ", TITLE)
    assert found.testcase.files == {"input.mlir": "module @m { }\n"}
    assert sorted(found.testcase.steps[0]) == ["--cse", "input.mlir", "iree-opt"]


def test_a_command_of_several_rows_in_a_code_span_is_one_command() -> None:
    found = extract_repro(
        """
        ```mlir
        func.func @h() {
          return
        }
        ```

        1. `iree-compile \\
          ./h.mlir \\
          -o h.vmfb \\
          --iree-hal-target-backends=llvm-cpu`
        2. `iree-run-module \\
          --module=h.vmfb \\
          --function=h`
        """,
        TITLE,
    )
    assert found.testcase.steps == (
        ("iree-compile", "h.mlir", "-o", "h.vmfb", "--iree-hal-target-backends=llvm-cpu"),
        ("iree-run-module", "--module=h.vmfb", "--function=h"),
    )
    assert not found.missing


def test_given_text_may_have_several_rows() -> None:
    found = extract_repro(
        """
        ```bash
        echo 'func.func @h() {
          return
        }' | iree-opt --cse
        ```
        """,
        TITLE,
    )
    assert found.testcase.files == {"input.mlir": "func.func @h() {\n  return\n}\n"}


def test_a_command_in_a_comment_of_the_mlir_counts() -> None:
    """Test files hold their command in the first line."""
    found = extract_repro(
        """
        ```mlir
        // iree-compile --iree-hal-target-backends=llvm-cpu odd.mlir -o odd.vmfb
        module {
          func.func @odd() {
            return
          }
        }
        ```
        It dies with a segmentation fault.
        """,
        TITLE,
    )
    assert found.testcase.steps[0][0] == "iree-compile"
    assert "module {" in found.testcase.files["odd.mlir"]


def test_the_variant_that_works_is_a_control() -> None:
    """Of two command lines, the failing one is the testcase."""
    body = f"""{MLIR}
    Works:
    ```
    iree-compile --iree-hal-target-backends=vmvx t.mlir -o t.vmfb
    ```
    Crashes:
    ```
    iree-compile --iree-hal-target-backends=llvm-cpu t.mlir -o t.vmfb
    ```
    """
    found = extract_repro(body, TITLE)
    assert "--iree-hal-target-backends=llvm-cpu" in found.testcase.steps[0]
    assert len(found.testcase.steps) == 1
    assert found.controls[0].steps == (("iree-compile", "--iree-hal-target-backends=vmvx", "t.mlir", "-o", "t.vmfb"),)


def test_a_file_that_is_only_attached_is_missing_with_its_address() -> None:
    """The single operation quoted in the error is not the input."""
    found = extract_repro(
        """
        ```
        big.mlir:118:12: error: 'x.load' op is odd
            %114 = x.load %112 : i64
                   ^
        ```
        1. Unpack [big.zip](https://github.com/user-attachments/files/12345/big.zip)
        2. `iree-compile big.mlir -o big.vmfb`
        """,
        TITLE,
    )
    assert list_missing(found) == [("file", "big.mlir")]
    assert found.missing[0].url.endswith("/big.zip")
    assert found.testcase.files == {}
    assert found.testcase.steps == (("iree-compile", "big.mlir", "-o", "big.vmfb"),)


def test_run_mlir_is_split_into_compile_and_run() -> None:
    """No wheel has ``iree-run-mlir``, which compiles and runs."""
    found = extract_repro(
        f"{MLIR}\n    ```\n    iree-run-mlir --iree-hal-target-backends=vmvx --device=local-sync t.mlir "
        "--input=4xf32=1\n    ```\n",
        TITLE,
    )
    assert [step[0] for step in found.testcase.steps] == ["iree-compile", "iree-run-module"]
    assert found.testcase.steps[1][2:] == ("--device=local-sync", "--input=4xf32=1")


@pytest.mark.parametrize(("words", "missing"), [("is the whole model", True), ("shows the log", False)])
def test_a_file_behind_a_link_is_not_the_block_beside_it(words: str, missing: bool) -> None:
    """The block is perhaps the part that fails. A link without the file's name offers something else."""
    link = "[here](https://gist.github.com/ada/0123456789abcdef0123456789abcdef)"
    said = f"`model.mlir` {words}: {link}" if missing else f"{link} {words}."
    command = "    ```sh\n    iree-compile model.mlir -o m.vmfb\n    ```"
    found = extract_repro(
        f"    It fails.\n\n{command}\n\n    {said}\n\n    One dispatch:\n\n{MLIR}", "iree-compile fails"
    )
    assert [name for _, name in list_missing(found)] == (["model.mlir"] if missing else [])


def test_mlir_alone_is_compiled_only_if_the_issue_is_about_compiling() -> None:
    """A repair adds the most ordinary compile, but not to a report that names no failure."""
    found = extract_repro(f"This segfaults in the compiler:\n\n{MLIR}", "IREE segmentation fault")
    assert list_repairs(found) == ["add-compile-step", "assume-device"]
    assert found.assumed_device == "llvm-cpu"
    named = extract_repro(f"This segfaults in the compiler:\n\n{MLIR}", "segmentation fault for llvm-cpu")
    assert not named.assumed_device
    assert "command" in extract_no_repro(f"I like this:\n\n{MLIR}", "IREE is nice").reason


def test_foreign_programs_never_become_steps() -> None:
    """They are left out, and a repair says so."""
    found = extract_repro(
        f"{MLIR}\n    ```sh\n    curl http://x | sh\n    rm -rf /\n    iree-opt t.mlir && reboot\n    ```\n", TITLE
    )
    assert [step[0] for step in found.testcase.steps] == ["iree-opt"]
    assert list_repairs(found).count("drop-command") >= 2


def test_check_tests_return_the_values_they_check() -> None:
    """No wheel has ``iree-check-module``: the value is returned, printed and compared instead."""
    found = extract_repro(
        """
        ```mlir
        func.func @half() {
          %x = util.unfoldable_constant dense<0.5> : tensor<4xf32>
          %r = math.roundeven %x : tensor<4xf32>
          check.expect_almost_eq_const(%r, dense<0.0> : tensor<4xf32>) : tensor<4xf32>
          return
        }
        ```
        ```
        iree-compile --iree-hal-target-backends=vmvx half.mlir -o half.vmfb
        iree-check-module --device=local-task --module=half.vmfb
        ```
        ```
        Expected near equality of these values.
          lhs: 4xf32=1 1 1 1
          rhs: 4xf32=0 0 0 0
        ```
        """,
        "IREE: roundeven test fails",
    )
    text = found.testcase.files["half.mlir"]
    assert "func.func @half() -> (tensor<4xf32>) {" in text
    assert "return %r : tensor<4xf32>" in text
    assert found.testcase.steps[1] == (
        "iree-run-module",
        "--device=local-task",
        "--module=half.vmfb",
        "--function=half",
    )
    assert (found.claim.actual, found.claim.expected) == ("4xf32=1 1 1 1", "4xf32=0 0 0 0")
    assert "rewrite-check" in list_repairs(found)


def test_a_script_that_writes_the_input_runs_first() -> None:
    """An export from Python and the command after it are one testcase."""
    found = extract_repro(
        """
        ```python
        import torch
        import iree.turbine.aot as aot

        aot.export(torch.nn.ReLU(), torch.zeros(2)).save_mlir("m.mlir")
        ```
        then `iree-compile m.mlir --iree-hal-target-backends=llvm-cpu -o m.vmfb` crashes
        """,
        TITLE,
    )
    assert [step[0] for step in found.testcase.steps] == ["python", "iree-compile"]
    assert found.testcase.requirements == ("torch", "iree-turbine")
    assert not found.missing


@pytest.mark.parametrize(
    ("writer", "name"),
    [
        (
            "```python\n    # make_inputs.py\n    import numpy as np\n"
            "    np.save('a.npy', np.ones(4, np.float32))\n    ```",
            "make_inputs.py",
        ),
        (
            "```\n    $ python -c \"import numpy as np; np.save('a.npy', np.ones(4, np.float32))\"\n    ```",
            "write_inputs.py",
        ),
    ],
    ids=["a script", "an argument of python"],
)
def test_the_python_that_writes_an_input_runs_before_the_commands(writer: str, name: str) -> None:
    """The report does not attach the file: it says how to make the file."""
    found = extract_repro(
        f"""{MLIR}
    {writer}

    ```sh
    iree-compile --iree-hal-target-backends=vmvx twice.mlir -o t.vmfb
    iree-run-module --module=t.vmfb --input=@a.npy
    ```
""",
        TITLE,
    )
    assert [step[0] for step in found.testcase.steps] == ["python", "iree-compile", "iree-run-module"]
    assert "np.save('a.npy'" in found.testcase.files[name]
    assert not list_missing(found)


IMPORTS = """
    ```python
    import torch
    torch.onnx.export(torch.nn.ReLU(), (torch.zeros(2),), "{exported}")
    ```

    ```sh
    iree-import-onnx relu.onnx -o relu.mlir
    iree-compile relu.mlir --iree-hal-target-backends=llvm-cpu -o relu.vmfb
    ```
"""


def test_a_model_that_a_script_exports_is_imported_by_the_commands() -> None:
    """The importer writes the compiler's input, and needs a package of its own."""
    found = extract_repro(IMPORTS.format(exported="relu.onnx"), TITLE)
    assert [step[0] for step in found.testcase.steps] == ["python", "iree-import-onnx", "iree-compile"]
    assert set(found.testcase.requirements) == {"torch", "onnx", "onnxscript"}
    assert not found.missing


def test_a_model_that_the_report_does_not_give_is_missing() -> None:
    """The file is asked for, and not the one that the importer makes of it."""
    found = extract_repro(IMPORTS.format(exported="other.onnx"), TITLE)
    assert list_missing(found) == [("file", "relu.onnx")]


def test_python_that_only_reads_a_file_does_not_supply_the_file() -> None:
    found = extract_repro(
        f"""{MLIR}
    ```python
    import numpy as np
    print(np.load('a.npy'))
    ```

    ```sh
    iree-compile --iree-hal-target-backends=vmvx twice.mlir -o t.vmfb
    iree-run-module --module=t.vmfb --input=@a.npy
    ```
""",
        TITLE,
    )
    assert list_missing(found) == [("file", "a.npy")]


def test_the_second_prompt_of_a_shell_is_no_redirection() -> None:
    """A shell shows ``> `` until the command is complete: in loops, behind a backslash, in here-documents."""
    found = extract_repro(
        """
    ```console
    $ cat > t.mlir <<EOF
    > func.func @t(%a: tensor<4xf32>) -> tensor<4xf32> {
    >   return %a : tensor<4xf32>
    > }
    > EOF
    $ for b in llvm-cpu vmvx; do
    >   iree-compile --iree-hal-target-backends=$b \\
    >     t.mlir -o $b.vmfb
    > done
    Segmentation fault (core dumped)
    ```
""",
        TITLE,
    )
    assert found.testcase.steps == (
        ("iree-compile", "--iree-hal-target-backends=llvm-cpu", "t.mlir", "-o", "llvm-cpu.vmfb"),
        ("iree-compile", "--iree-hal-target-backends=vmvx", "t.mlir", "-o", "vmvx.vmfb"),
    )
    assert found.testcase.files["t.mlir"].startswith("func.func @t(")


def test_a_prompt_may_be_a_directory_alone() -> None:
    session = "~/t $ cat blocks.mlir\n" + MODULE + "~/t $ iree-opt --canonicalize blocks.mlir\nmodule {\n}\n"
    found = extract_repro(f"It prints an empty module.\n\n```\n{session}```\n", TITLE)
    assert found.testcase.steps == (("iree-opt", "--canonicalize", "blocks.mlir"),)
    assert found.testcase.files["blocks.mlir"].strip() == MODULE.strip()


MODULE = "func.func @f(%a: i32) -> i32 {\n  return %a : i32\n}\n"


def test_a_program_of_an_earlier_phase_is_printed_if_the_report_names_no_file() -> None:
    found = extract_repro(f"{MLIR}\n\n    `iree-compile --compile-to=flow /tmp/twice.mlir`\n", TITLE)
    assert found.testcase.steps == (("iree-compile", "--compile-to=flow", "twice.mlir"),)
    module = extract_repro(f"{MLIR}\n\n    `iree-compile --compile-to=vm /tmp/twice.mlir`\n", TITLE)
    assert "-o" in module.testcase.steps[0]


@pytest.mark.parametrize("written", ["-o t.vmfb", "-o=t.vmfb", "-o - > out/t.vmfb", "--compile-to=hal -o out/t.vmfb"])
def test_a_call_that_writes_what_a_failing_call_reads_belongs_to_the_failure(written: str) -> None:
    """The words "works fine" above the first calls of a session speak of these calls, and make no variant."""
    found = extract_repro(
        f"""{MLIR}
    Compiling works fine, and so does the first run:
    ```console
    $ iree-compile --iree-hal-target-backends=vmvx twice.mlir {written}
    $ iree-run-module --module=t.vmfb --input=4xf32=1
    4xf32=2 2 2 2
    ```
    The second run crashes:
    ```console
    $ iree-run-module --module=./t.vmfb --input=4xf32=2
    Segmentation fault (core dumped)
    ```
""",
        TITLE,
    )
    assert [step[0] for step in found.testcase.steps][0::2] == ["iree-compile"]
    assert found.testcase.steps[-1][-1] == "--input=4xf32=2"
    assert not list_missing(found)
    assert not any(step[-1] == "--input=4xf32=2" for control in found.controls for step in control.steps)


def test_an_input_that_a_failing_call_names_is_no_control() -> None:
    """A file "compiles fine" before a flag is added: both variants read the file."""
    found = extract_repro(
        """
    `a.mlir` works fine on its own:
    ```mlir
    // a.mlir
    func.func @a(%x: tensor<4xf32>) -> tensor<4xf32> {
      return %x : tensor<4xf32>
    }
    ```
    The other file fails:
    ```mlir
    // b.mlir
    func.func private @a(tensor<4xf32>) -> tensor<4xf32>
    ```
    ```sh
    iree-opt b.mlir -o c.mlir
    iree-compile --compile-to=flow a.mlir -o a.flow.mlir
    ```
    Segmentation fault (core dumped)
""",
        TITLE,
    )
    assert set(found.testcase.files) == {"a.mlir", "b.mlir"}
    assert not list_missing(found)


def test_the_input_that_works_is_a_control() -> None:
    """Two programs under opposite headings share one command."""
    found = extract_repro(
        """
        ### Incorrect results

        ```mlir
        func.func @f() -> i32 { %c = arith.constant 1 : i32 return %c : i32 }
        ```

        ### Correct results

        ```mlir
        func.func @f() -> i32 { %c = arith.constant 2 : i32 return %c : i32 }
        ```

        `iree-compile --iree-hal-target-backends=llvm-cpu f.mlir -o f.vmfb`
        """,
        "IREE gives wrong results",
    )
    assert "constant 1" in found.testcase.files["f.mlir"]
    assert "constant 2" in found.controls[0].files["f.mlir"]


def test_commands_of_a_build_log_are_not_steps() -> None:
    """They are steps of the build, on files of the source tree."""
    body = """
    ```
    [103/2280] Generating x.bin
    FAILED: runtime/x.bin
    cd /w/build && /w/build/tools/iree-compile --iree-hal-target-backends=llvm-cpu /w/x.mlir -o x.bin
    ninja: build stopped: subcommand failed.
    ```
    """
    assert "output" in extract_no_repro(body, "IREE does not build").reason


def test_a_missing_program_is_named_by_its_link() -> None:
    """A gist called a log is not the program."""
    found = extract_no_repro(
        """
        crash log: https://gist.github.com/someone/00000000000000000000
        repro: https://gist.github.com/someone/11111111111111111111
        """,
        "IREE crashes",
    )
    assert list_missing(found) == [("file", "https://gist.github.com/someone/11111111111111111111")]


@pytest.mark.parametrize("label", ["2. Run ", "To run: ", "Command: ", "To reproduce it: ", "repro: "])
def test_a_label_may_stand_before_a_command(label: str) -> None:
    """``2. Run ./iree-compile …`` in a list of steps is a command."""
    found = extract_repro(
        f"""
        ```mlir
        func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {{
          return %a : tensor<4xf32>
        }}
        ```
        It fails with `error: failed to legalize operation 'arith.addf'`.

        1. Save it
        {label}./iree-compile sample.mlir --iree-hal-target-backends=vmvx -o=sample.vmfb
        """,
        "IREE: failed to legalize",
    )
    assert "--iree-hal-target-backends=vmvx" in found.testcase.steps[0]


@pytest.mark.parametrize(
    "sentence",
    [
        "iree-compile crashes with input MLIR of an unranked tensor as function parameter.",
        "iree-opt prints the module and then dies in canonicalize.mlir processing, see below",
    ],
)
def test_a_sentence_that_begins_with_a_program_is_no_command(sentence: str) -> None:
    command = "`iree-compile --iree-hal-target-backends=llvm-cpu twice.mlir -o a.vmfb`"
    body = f"{sentence}\n\n{textwrap.dedent(MLIR)}\n{command}\n"
    found = extract_repro(body, TITLE)
    assert not found.missing
    assert [step[0] for step in found.testcase.steps] == ["iree-compile"]
    assert "twice.mlir" in found.testcase.files


def test_a_compile_without_a_target_gets_one() -> None:
    """Every release refuses a dispatch without a target. The added flag is recorded."""
    found = extract_repro(f"{MLIR}\n    ```\n    iree-compile twice.mlir -o t.vmfb\n    ```\n", TITLE)
    assert found.testcase.steps == (
        ("iree-compile", "--iree-hal-target-backends=llvm-cpu", "twice.mlir", "-o", "t.vmfb"),
    )
    assert "add-target" in list_repairs(found)


@pytest.mark.parametrize(
    ("words", "title"),
    [
        ("--compile-to=flow twice.mlir -o t.mlir", TITLE),
        ("--iree-hal-target-device=hip twice.mlir -o t.vmfb", TITLE),
        ("--compile-mode=hal-executable twice.mlir -o t.vmfb", TITLE),
    ],
)
def test_a_compile_that_needs_no_target_gets_none(words: str, title: str) -> None:
    """It ends before a target is used, or names one."""
    found = extract_repro(f"{MLIR}\n    ```\n    iree-compile {words}\n    ```\n", title)
    assert "add-target" not in list_repairs(found)


def test_a_report_about_the_missing_target_keeps_its_command() -> None:
    """The refusal is what the report is about."""
    found = extract_repro(
        f"{MLIR}\n    ```\n    iree-compile twice.mlir -o t.vmfb\n    ```\n"
        "    ```\n    twice.mlir:0:0: error: no HAL devices defined in the module\n    ```\n",
        TITLE,
    )
    assert "add-target" not in list_repairs(found)


WRONG = """
    The result should be `4xf32=2 2 2 2`, but it is `4xf32=0 0 0 0`.
"""


def test_a_wrong_result_of_mlir_alone_is_compiled_and_run() -> None:
    """The only function has no arguments, so that there is one way to run it."""
    mlir = MLIR.replace("@twice(%a: tensor<4xf32>)", "@ones()")
    found = extract_repro(mlir + WRONG, "iree computes a wrong result")
    assert [step[0] for step in found.testcase.steps] == ["iree-compile", "iree-run-module"]
    assert "--function=ones" in found.testcase.steps[1]
    assert "add-run-step" in list_repairs(found)


def test_a_wrong_result_of_a_function_with_arguments_is_not_run() -> None:
    """Nobody knows the arguments."""
    lacking = extract_no_repro(MLIR + WRONG, "iree computes a wrong result")
    assert list_missing(lacking) == [("call", "the command that shows the failure")]


def test_told_inputs_are_passed_to_the_only_function() -> None:
    """The expected output has the same notation, and is no input."""
    told = "    With the input `4xf32=1 2 3 4` it prints `4xf32=0 0 0 0`, and not `4xf32=2 4 6 8`.\n"
    found = extract_repro(MLIR + told, "iree computes a wrong result")
    assert found.testcase.steps[1][-1] == "--input=4xf32=1 2 3 4"
    assert len(found.testcase.steps[1]) == 5
    both = MLIR.replace("@twice(%a: tensor<4xf32>)", "@twice(%a: tensor<4xf32>, %b: tensor<2xi8>)")
    told = "    The inputs are `4xf32=1 2 3 4` and `2xi8=1`. It prints `4xf32=0 0 0 0`.\n"
    steps = extract_repro(both + told, "iree computes a wrong result").testcase.steps
    assert steps[1][-2:] == ("--input=4xf32=1 2 3 4", "--input=2xi8=1")


@pytest.mark.parametrize(
    ("title", "text", "runs"),
    [
        ("iree crashes at runtime", "It compiles fine.", True),
        ("Segfault in iree", "Compilation succeeds, and then it crashes with SIGSEGV.", True),
        ("iree: crash", "`iree-run-module` on local-sync dies with a segmentation fault.", True),
        ("iree: crash", "```\nc/hal/x.c:3: INVALID_ARGUMENT; the shape differs; while calling import\n```", True),
        ("iree: crash", "When running the canonicalizer pass, it crashes with a segmentation fault.", False),
        ("iree: segfault", "iree-compile crashes with a segmentation fault on llvm-cpu.", False),
        ("iree: segfault", "I get a segfault when running iree-compile on it.", False),
    ],
)
def test_a_failure_of_the_running_program_needs_a_run(title: str, text: str, runs: bool) -> None:
    """A clean compilation would say nothing about it. The inputs are generated."""
    found = extract_repro(f"{MLIR}\n    " + text.replace("\n", "\n    ") + "\n", title)
    assert [step[0] for step in found.testcase.steps] == ["iree-compile", "iree-run-module"][: 1 + runs]
    assert len(found.assumed) == 1 + runs
    assert found.generates_inputs is runs


RUN = """```
    iree-compile --iree-hal-target-backends=vmvx t.mlir -o t.vmfb
    iree-run-module --module=t.vmfb
    ```"""


@pytest.mark.parametrize("words", ["It crashes with a segmentation fault.", "It hangs."])
def test_a_run_without_inputs_gets_generated_ones(words: str) -> None:
    """The report gives the types of the arguments. The repair names the values."""
    found = extract_repro(f"{MLIR}\n    {RUN}\n\n    {words}\n", "iree-run-module fails")
    assert found.testcase.steps[1] == ("iree-run-module", "--module=t.vmfb", "--input=4xf32=0.5")
    assert found.generates_inputs


def test_a_report_about_values_is_asked_for_its_inputs() -> None:
    """Other inputs have other results."""
    text = f"{MLIR}\n    {RUN}\n\n    The result is wrong: it prints 4xf32=1 1 1 1, expected 4xf32=2 2 2 2.\n"
    found = extract_repro(text, "wrong result")
    assert list_missing(found) == [("code", "the inputs of iree-run-module --module=t.vmfb")]


def test_a_report_about_missing_inputs_is_run_as_it_is() -> None:
    """The message of the runner is the reported failure."""
    said = "```\n    INVALID_ARGUMENT; input list and function mismatch; expected 1 arguments but passed 0\n    ```"
    found = extract_repro(f"{MLIR}\n    {RUN}\n\n    It says:\n\n    {said}\n", "iree-run-module fails")
    assert found.testcase.steps[1] == ("iree-run-module", "--module=t.vmfb")


@pytest.mark.parametrize(
    ("title", "flag"),
    [
        ("[ROCm] twice fails to compile on gfx1100", "--iree-hip-target=gfx1100"),
        ("[ROCm] twice fails to compile", "--iree-hip-target=gfx942"),
        ("`--iree-opt-data-tiling` makes twice fail to compile", "--iree-opt-data-tiling"),
    ],
)
def test_an_added_call_has_the_chip_and_the_flags_that_the_report_tells(title: str, flag: str) -> None:
    """Without a chip, the compiler refuses AMD. Without the accused flag, a clean run says nothing."""
    found = extract_repro(MLIR, title)
    assert found.testcase.steps[0][-1] == flag


def test_a_chip_is_added_with_the_target_that_a_command_lacks() -> None:
    body = f"{MLIR}\n    `iree-compile twice.mlir -o a.vmfb` fails on gfx950.\n"
    found = extract_repro(body, "[ROCm] crash")
    assert found.testcase.steps[0][1:3] == ("--iree-hal-target-backends=rocm", "--iree-hip-target=gfx950")
    given = extract_repro(body.replace("-o", "--iree-hip-target=gfx90a -o"), "[ROCm] crash")
    assert not any("gfx950" in word for word in given.testcase.steps[0])


NAMED = """The backends differ on this:

```mlir
func.func @root(%x: tensor<f32>) -> tensor<f32> {{
  %0 = math.sqrt %x : tensor<f32>
  return %0 : tensor<f32>
}}
```
```
iree-compile --iree-hal-target-backends=vmvx root.mlir -o root.vmfb
iree-run-module --module=root.vmfb --function=foo --input=f32=0.5
```
```
{output}
```
"""


@pytest.mark.parametrize(
    ("output", "called"),
    [
        ("EXEC @foo\nresult[0]: hal.buffer_view\nf32=0.7", "--function=root"),
        ("NOT_FOUND; no function `foo` exported by module", "--function=foo"),
    ],
)
def test_a_run_calls_the_only_function_if_the_report_shows_its_result(output: str, called: str) -> None:
    """The name was changed when the report was written. Where the call fails, the name may be the failure."""
    found = extract_repro(NAMED.format(output=output), "Wrong result of a square root")
    assert called in found.testcase.steps[-1]


@pytest.mark.parametrize(("title", "kind"), [("Lowering of iota fails", "call"), ("An iota", "code")])
def test_single_operations_of_a_failure_report_are_a_part_of_its_testcase(title: str, kind: str) -> None:
    """The function around them is asked for. Without a failure, nothing is."""
    text = '```mlir\n%0 = "stablehlo.iota"() {iota_dimension = 0 : i64} : () -> tensor<4xui32>\n...\n```\n'
    assert [entry.kind for entry in extract_no_repro(text, title, "iree-org/iree").missing] == [kind]


DUMP = """
The file before the pass:

    $ iree-compile --iree-hal-target-backends=vmvx twice.mlir -o /tmp/t.vmfb

IR after the pass:

```mlir
// *** IR Dump After SomePass ***
func.func @twice(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = flow.tensor.splat %a : tensor<4xf32>
  return %0 : tensor<4xf32>
}
```
"""


def test_a_dump_below_the_command_is_not_its_input() -> None:
    """The name of the file stands right above the dump, and the program has no name."""
    found = extract_repro(MLIR + DUMP, "iree: SomePass crashes")
    assert "IR Dump" not in "".join(found.testcase.files.values())
    assert list(found.testcase.files) == ["twice.mlir"]


@pytest.mark.parametrize("program", ["mlir-opt", "./build/bin/mlir-opt", "iree-dialects-opt"])
def test_a_program_of_another_project_has_a_stand_in(program: str) -> None:
    """The compiler's own program has the same passes."""
    found = extract_repro(f"{MLIR}\n    To repro: `{program} -canonicalize in.mlir`\n", "iree: canonicalize crashes")
    assert found.testcase.steps == (("iree-opt", "-canonicalize", "in.mlir"),)
    assert "bare-tool" in list_repairs(found)


def test_a_stand_in_does_not_join_calls_of_the_compiler() -> None:
    """The other program only prepared the text that the report gives."""
    calls = "```\n$ mlir-opt -cse a.mlir -o b.mlir\n$ iree-compile --iree-hal-target-backends=vmvx b.mlir\n```\n"
    found = extract_repro(f"{MLIR}\n{calls}", "iree crashes")
    assert [step[0] for step in found.testcase.steps] == ["iree-compile"]


def test_an_open_pass_pipeline_is_closed() -> None:
    """A parser's error about the command is no evidence about the reported crash."""
    told = '    `tools/iree-opt --pass-pipeline="builtin.module(func.func(canonicalize` crashes on this.\n'
    found = extract_repro(MLIR + told, "iree-opt crashes")
    assert found.testcase.steps[0][-1] == "--pass-pipeline=builtin.module(func.func(canonicalize))"
    assert "close-pipeline" in list_repairs(found)


def test_a_title_that_says_what_should_work_names_a_failure() -> None:
    """The only program uses the operation of the title, whatever the words above it wish for."""
    wish = "Some tests need it. Should be similar to the support of i16.\n"
    found = extract_repro(wish + textwrap.dedent(MLIR), "`arith.addf` should work for `f8`")
    assert [step[0] for step in found.testcase.steps] == ["iree-compile"]
    assert found.claim.kind.value == "error"


def test_a_file_that_another_program_derives_is_a_comparison() -> None:
    """``sed`` makes a smaller module of the testcase. The calls that read it belong to no failure."""
    found = extract_repro(
        f"""    `t.mlir`:

{MLIR}
    ```console
    $ iree-compile t.mlir -o t.vmfb
    t.mlir:1:1: error: no way
    $ sed '/main/d' t.mlir > small.mlir
    $ iree-compile small.mlir -o t.vmfb
    $ iree-run-module --module=t.vmfb
    ```
""",
        TITLE,
    )
    assert list_missing(found) == []
    assert [(step[0], step[-1]) for step in found.testcase.steps] == [("iree-compile", "t.vmfb")]


@pytest.mark.parametrize(
    ("placeholder", "told", "title", "device"),
    [
        ("X", "| x | X=vmvx | X=llvm-cpu |", "[CPU] wrong sums", "llvm-cpu"),
        ("X", "| x | X=vmvx | X=llvm-cpu |", "wrong sums", "vmvx"),
        ("<backend>", "where backend is `vmvx` or `llvm-cpu`", "wrong sums", "vmvx"),
        ("$TARGET", "with TARGET=llvm-cpu", "wrong sums", "llvm-cpu"),
    ],
)
def test_a_word_that_stands_for_devices_is_one_of_these(placeholder: str, told: str, title: str, device: str) -> None:
    found = extract_repro(
        f"""{MLIR}
    `iree-compile --iree-hal-target-backends={placeholder} twice.mlir -o a.vmfb`

    `iree-run-module --module=a.vmfb --function=twice --input="4xf32=1 2 3 4"`

    {told}
""",
        title,
    )
    assert found.testcase.steps[0][1] == f"--iree-hal-target-backends={device}"
    assert found.device == device


def test_a_whole_function_in_a_code_span_is_the_input() -> None:
    """Part of a function is none, and neither is one of two."""
    function = "func.func @same(%a: tensor<3xi8>) -> tensor<3xi8> { return %a : tensor<3xi8> }"
    command = "`iree-compile --iree-hal-target-backends=llvm-cpu same.mlir -o same.vmfb`"
    found = extract_repro(f"Module: `{function}`, compiled with {command}.", TITLE)
    assert found.testcase.files == {"same.mlir": f"{function}\n"}
    assert not list_missing(found)
    for module in (function.removesuffix("}"), f"{function}` and `{function.replace('same', 'other')}"):
        assert list_missing(extract_repro(f"Module: `{module}`, compiled with {command}.", TITLE))


def test_a_script_of_the_source_tree_may_be_named_by_a_sentence() -> None:
    for says in (
        "Just run the test at\n`~/tvm/tests/python/integration/test_tensorize.py`.",
        "Take this commit (https://x.org/c/9f) and run tests/python/integration/test_tensorize.py, then it fails.",
    ):
        found = extract_no_repro(says, repository="apache/tvm")
        assert list_missing(found) == [("source-script", "tests/python/integration/test_tensorize.py")]


def test_passes_in_a_sentence_beside_commands_are_a_remark() -> None:
    """Without a file. The run is the testcase, and the module is compiled for it."""
    found = extract_repro(
        f"{MLIR}\n    ```\n    iree-run-module --module=t.vmfb --function=twice --input=4xf32=nan\n    4xf32=1\n"
        "    ```\n\n"
        "    Also `iree-opt --canonicalize` folds it to NaN.\n",
        "wrong value",
    )
    assert [step[0] for step in found.testcase.steps] == ["iree-compile", "iree-run-module"]
    assert not list_missing(found)


@pytest.mark.parametrize(
    ("title", "call"),
    [
        ("iree-shrink dies on globals", "$ ./build/tools/iree-shrink --by=halves twice.mlir -o small.mlir"),
        ("A crash on globals", "iree-shrink twice.mlir\niree-shrink: /src/shrink.cc:120: Assertion `op' failed."),
        ("A crash on globals", "0. Program arguments: /src/iree-shrink twice.mlir\n#0 0x1 run shrink.cc:3"),
    ],
)
def test_a_failing_program_that_no_release_contains_is_named(title: str, call: str) -> None:
    """The compiler's own call beside it, or one of ours, would answer another question."""
    body = f"{MLIR}\n    ```\n" + "".join(f"    {row}\n" for row in call.split("\n")) + "    ```\n"
    helper = "\n    ```sh\n    #!/bin/bash\n    iree-opt --cse $1 | grep global\n    ```\n"
    for more in ("", helper):
        found = extract_no_repro(body + more, title, "iree-org/iree")
        assert list_missing(found) == [("absent-program", "iree-shrink")]


@pytest.mark.parametrize("program", ["iree-tracy-capture", "iree-shrink", "iree-compiler"])
def test_a_program_beside_the_failing_call_changes_no_testcase(program: str) -> None:
    """One of a release, one of none that is no part of the failure, and a misspelt one."""
    found = extract_repro(
        f"{MLIR}\n    ```\n    iree-compile --x=y twice.mlir -o a.vmfb\n    {program} --about twice.mlir\n    ```\n",
        TITLE,
    )
    assert [step[0] for step in found.testcase.steps] == ["iree-compile"]


def test_a_program_printed_below_its_command_is_no_input() -> None:
    """Below a heading such as *Failing*, or in the section *Output*, which may end in the program."""
    printed = MLIR.replace("arith.addf %a, %a", "arith.mulf %a, %two")
    open_end = printed.rstrip().removesuffix("```").rstrip()
    for body in (
        f"### Reproducer\n\n{MLIR}\n### Commands\n#### Failing\n`mlir-opt twice.mlir --cse`\n\n{printed}",
        f"### Reproducer\n\n{MLIR}\n    ```\n    iree-opt twice.mlir --cse\n    ```\n\n### Output\n\n{open_end}",
    ):
        found = extract_repro("\n".join(row.removeprefix("    ") for row in body.split("\n")), "Wrong IR after --cse")
        assert "arith.mulf" not in found.testcase.files["twice.mlir"]
        assert "arith.mulf" in found.claim.actual


def test_each_of_two_programs_is_compiled_for_the_function_that_is_called() -> None:
    """The second command of the compiler is not in the report; its flags are those of the first."""
    other = MLIR.replace("@twice", "@square").replace("addf", "mulf")
    run = "    ```\n    $ iree-run-module --module={0}.vmfb --function={1} --input=4xf32=1\n    ```\n"
    command = "    ```\n    $ iree-compile --iree-hal-target-backends=vmvx twice.mlir -o a.vmfb\n    ```\n"
    found = extract_repro(
        f"{MLIR}{command}{run.format('a', 'twice')}{other}{run.format('b', 'square')}", "Wrong values"
    )
    assert found.testcase.steps[2] == ("iree-compile", "--iree-hal-target-backends=vmvx", "b.mlir", "-o", "b.vmfb")
    assert "@square" in found.testcase.files["b.mlir"]
    assert [step[1] for step in found.testcase.steps[1::2]] == ["--module=a.vmfb", "--module=b.vmfb"]


def test_a_program_in_c_is_out_of_reach() -> None:
    """Its libraries are in no release. An excerpt of the compiler's own code is no program."""
    body = (
        'The server hangs:\n\n    ```c\n    #include "iree/base/api.h"\n    %s {\n      return 0;\n    }\n    ```\n'
    )
    found = extract_no_repro(body % "int main(int argc, char** argv)", "Hang in the tokenizer", "iree-org/iree")
    assert [kind for kind, _ in list_missing(found)] == ["native-program"]
    found = extract_no_repro(body % "static int decode(char* text)", "Hang in the tokenizer", "iree-org/iree")
    assert [kind for kind, _ in list_missing(found)] == ["code"]


@pytest.mark.parametrize(
    ("call", "steps"),
    [
        ("iree-opt --cse twice.mlir", (("iree-opt", "--cse", "twice.mlir", "-o", "$"), ("iree-opt", "$"))),
        (
            "iree-opt --cse twice.mlir -o /dev/null",
            (("iree-opt", "--cse", "twice.mlir", "-o", "$"), ("iree-opt", "$")),
        ),
        ("iree-opt twice.mlir --cse -o a.mlir", (("iree-opt", "twice.mlir", "--cse", "-o", "$"), ("iree-opt", "$"))),
        (
            "iree-opt -split-input-file twice.mlir",
            (("iree-opt", "-split-input-file", "twice.mlir", "-o", "$"), ("iree-opt", "$", "-split-input-file")),
        ),
        ("iree-opt --verify-diagnostics twice.mlir", (("iree-opt", "--verify-diagnostics", "twice.mlir"),)),
    ],
)
def test_the_printed_program_is_read_again_where_an_assertion_is_reported(
    call: str, steps: tuple[tuple[str, ...], ...]
) -> None:
    """Releases are built without assertions. A fatal error needs no second reading."""
    fails = "iree-opt: T.h:18: Assertion `succeeded(verify(context))' failed."
    found = extract_repro(f"{MLIR}\n    ```\n    $ {call}\n    {fails}\n    ```\n", "A crash", "iree-org/iree")
    assert found.testcase.steps == tuple(tuple(word.replace("$", READ_BACK) for word in step) for step in steps)
    assert ("read-again" in list_repairs(found)) is (len(steps) == 2)
    other = extract_repro(f"{MLIR}\n    ```\n    $ {call}\n    LLVM ERROR: out of registers\n    ```\n", "A crash")
    assert len(other.testcase.steps) == 1


@pytest.mark.parametrize(
    ("second", "is_left_out"), [("iree-opt --cse", True), ("iree-run-module --module=a.vmfb", False)]
)
def test_a_further_compilation_of_a_missing_file_is_left_out(second: str, is_left_out: bool) -> None:
    """The report quotes the failure of the first call. A run may be the failing one, and is asked for its input."""
    wanted = "other.mlir" if is_left_out else "--input=@other.npy"
    call = "iree-compile --x=y twice.mlir -o a.vmfb"
    found = extract_repro(
        f"{MLIR}\n    ```\n    $ {call}\n    twice.mlir:2:3: error: no rule for it\n    ```\n"
        f"\n    Then this gives one region:\n\n    ```\n    $ {second} {wanted}\n    ```\n",
        "error: no rule for it",
    )
    assert (list_missing(found) == []) is is_left_out
    assert (len(found.testcase.steps) == 1) is is_left_out


def test_the_first_program_is_the_input_whatever_its_words() -> None:
    """And a program below words with the command in them is what the command prints."""
    printed = MLIR.replace("arith.addf %a, %a", "arith.mulf %a, %two")
    found = extract_repro(
        f"    This module gives 11 + 7:\n\n{MLIR}\n"
        "    After the pass (`iree-opt --cse twice.mlir`, 3.6.0) it is above:\n\n"
        f"{printed}\n    iree-compile --version:\n\n    ```\n    IREE compiler version 3.6.0\n    ```\n",
        "--cse reorders",
    )
    assert "arith.addf" in found.testcase.files["twice.mlir"]
    assert "arith.mulf" in found.claim.actual
    assert [step[0] for step in found.testcase.steps] == ["iree-opt"]
