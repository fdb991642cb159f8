"""Port Python code. Every name is resolved through the testcase's own imports (libcst) before the lookup. Pure.

After ``from tvm import relax``, ``relax.X`` is ``tvm.relax.X``. Strings, comments, local variables and attributes of
other objects are kept. An import keeps its local name, so that the uses of the name need no change. A use is
rewritten only if its name moved to another place than its import.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import libcst as cst
from libcst import metadata

from runners.core.hostile.syntax import is_shallow
from runners.core.toolchain.rewriting import Argument, Assigned, CallForm, Expression, Idioms, StringUse
from runners.rewrite.carried import find_carried
from runners.rewrite.names import Names, Rename
from runners.rewrite.scope import Binding, dotted_name, first_name, get_root, parse_name
from runners.rewrite.script_language import ScriptPorter
from runners.rewrite.text import NameChange, Unportable, port_flag, port_mlir, select_flags

MAX_CODE_CHARS = 100_000
MAX_PARTS = 999
"""Maximum number of parts of an f-string."""
_PLACEHOLDER = "90210460"
"""The leading digits of a number that represents an expression."""


def port_python(code: str, names: Names, idioms: Idioms) -> tuple[str, list[NameChange]]:
    """Write code with the names and idioms of a release. Code that cannot be parsed is returned unchanged.

    Raises:
        Unportable: the code uses a removed name without an exact replacement.
    """
    if len(code) > MAX_CODE_CHARS or not is_shallow(code):
        return code, []
    try:
        tree = metadata.MetadataWrapper(cst.parse_module(code))
        rewriter = _Rewriter(names, idioms, code)
        ported = tree.visit(rewriter).code
        cst.parse_module(ported)
    except (cst.ParserSyntaxError, cst.CSTValidationError, RecursionError, UnicodeError):
        return code, []
    return (ported, rewriter.changes) if rewriter.changes else (code, [])


class _Rewriter(ScriptPorter):
    """Ports uses, calls and strings. Its bases port imports and the embedded language.

    All work in one traversal: each change needs the names and the line numbers of the posted text.
    """

    def __init__(self, names: Names, idioms: Idioms, code: str) -> None:
        super().__init__(names, idioms)
        self.code = code
        self.members: Mapping[str, str] = {
            step.old[1:]: step.new[1:] for step in reversed(names.members) if step.new is not None
        }
        self.options: Mapping[str, str] = {s.old: s.new for s in reversed(names.options) if s.new is not None}
        self.ported: dict[cst.Attribute, cst.Name | cst.Attribute] = {}
        self.names_as_strings: set[cst.SimpleString] = set()
        self.rewritten: dict[cst.BaseExpression, CallForm] = {}
        """Functions whose call is written in another form. Their name is kept."""
        self.makers: frozenset[cst.Call] = frozenset()
        """Calls that make a value which the program only passes on, and which the ported calls do not need."""
        self.prints: frozenset[cst.Call] = frozenset()
        """Calls of ``print`` to leave out."""
        self.passed_on: frozenset[cst.Call] = frozenset()
        """Calls whose result has another text and may be printed."""
        self.made: list[tuple[str, str]] = []
        """Variables assigned so far, each with the function that made its value."""

    def visit_Module(self, node: cst.Module) -> None:
        for form in self.idioms.carriers:
            found = find_carried(node, form, self)
            self.makers |= found.makers
            self.prints |= found.prints
            self.passed_on |= found.passed_on
            self.rewritten |= {call.func: how for call, how in found.calls.items()}

    # ---------------------------------------------------------------------------------------- uses

    def visit_Attribute(self, node: cst.Attribute) -> bool:
        if node in self.rewritten or any(node is maker.func for maker in self.makers):
            return False
        resolved = self.resolve_name(node)
        if resolved is None:
            return True
        binding, local, rest = resolved
        old = f"{binding.old}.{rest}"
        new = self.names.find_successor(old)
        if new is None:
            raise Unportable(old)
        if self.idioms.spell is not None:
            new = self.idioms.spell(new, self.code)
        if new != f"{binding.new}.{rest}":
            text = self._write_name(new, binding, local, node)
            if text != dotted_name(node):
                self.record_change(node, old, new)
                self.ported[node] = parse_name(text)
        return False

    def _write_name(self, new: str, binding: Binding, local: str, node: cst.Attribute) -> str:
        """Write a dotted name at a node: through the same import if possible, else from its package."""
        home, _, name = new.rpartition(".")
        if home == "builtins":
            return name
        if new.startswith(f"{binding.new}."):
            return local + new[len(binding.new) :]
        self.require_package(get_root(new), first_name(node))
        return new

    def leave_Attribute(self, original_node: cst.Attribute, updated_node: cst.Attribute) -> cst.BaseExpression:
        if original_node in self.ported:
            return self.ported[original_node].with_changes(lpar=updated_node.lpar, rpar=updated_node.rpar)
        if self.resolve_name(original_node) is not None:
            return updated_node
        if (lost := self.idioms.lost.get(original_node.attr.value)) is not None:
            return self._read_lost(lost, original_node, updated_node)
        new = self.members.get(original_node.attr.value)
        if new is None:
            return updated_node
        self.record_change(original_node, f".{original_node.attr.value}", f".{new}")
        return updated_node.with_changes(attr=cst.Name(new))

    def _read_lost(self, code: str, original: cst.Attribute, updated: cst.Attribute) -> cst.BaseExpression:
        """Read an attribute in the way that works for all objects. Code of an embedded language is left unchanged."""
        if self.is_in_script:
            return updated
        self.record_change(original, f".{original.attr.value}", code.format_map({"value": "…"}))
        return cst.parse_expression(code.format_map({"value": cst.Module(body=[]).code_for_node(updated.value)}))

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        if original_node in self.prints:
            return self._leave_out_print(original_node, updated_node)
        function = self.get_full_name(original_node.func)
        if not function:
            return updated_node
        if original_node in self.makers:
            self.record_change(original_node, f"{function}(…)", "…")
            return updated_node.args[0].value.with_changes(lpar=updated_node.lpar, rpar=updated_node.rpar)
        if (form := self.rewritten.get(original_node.func)) is not None:
            return self._write_form(form, function, original_node, updated_node)
        here = self._find_home(function)
        arguments = [
            self._port_argument(old, new, function, here, place)
            for place, (old, new) in enumerate(zip(original_node.args, updated_node.args, strict=True))
        ]
        arguments = [*self._find_implied(original_node, function), *arguments]
        return updated_node.with_changes(args=arguments)

    def _write_form(self, form: CallForm, function: str, original: cst.Call, updated: cst.Call) -> cst.BaseExpression:
        """Write a call of a removed function in its new form."""
        given = {
            name: self._port_string(Argument(function=function, keyword=name, position=place), old.value, new.value)
            for place, (name, old, new) in enumerate(_name_arguments(form, function, original, updated))
        }
        if form.package:
            self.require_package(form.package, first_name(original.func))
        names = {name: name for name in form.parameters} | {"home": function.rpartition(".")[0]}
        shown = form.shown or form.code.format_map(names)
        prints = original not in self.passed_on
        self.record_change(original, f"{function}({', '.join(given)})", shown, prints=prints)
        code = cst.Module(body=[]).code_for_node
        home = dotted_name(original.func).rpartition(".")[0]
        filled = {**form.defaults, **{name: code(value) for name, value in given.items()}, "home": home}
        written = cst.parse_expression(form.code.format_map(filled))
        return written.with_changes(lpar=updated.lpar, rpar=updated.rpar)

    def _leave_out_print(self, original: cst.Call, updated: cst.Call) -> cst.BaseExpression:
        """Compute the text of a value, which would differ, and print nothing."""
        self.record_change(original, "print(…)", "str(…)", prints=False)
        return updated.with_changes(func=cst.Name("str"))

    def _find_implied(self, call: cst.Call, function: str) -> list[cst.Arg]:
        """Return the argument to put first, if the function took it from a global and exactly one variable has it."""
        for rule in self.idioms.implied:
            plain = all(arg.keyword is None and not arg.star for arg in call.args)
            named = rule.function in (function, self._find_home(function))
            if not named or len(call.args) != rule.count or not plain:
                continue
            variables = {name for name, maker in self.made if {maker, self._find_home(maker)} & rule.makers}
            if len(variables) == 1:
                value = f"{variables.pop()}.{rule.attribute}"
                self.record_change(call, f"{function}(…)", f"{function}({value}, …)", notation=True)
                return [cst.Arg(value=cst.parse_expression(value))]
        return []

    def _port_argument(self, original: cst.Arg, updated: cst.Arg, function: str, here: str, place: int) -> cst.Arg:
        keyword = original.keyword.value if original.keyword else ""
        step = self.names.find_keyword(keyword, here) or self.names.find_keyword(keyword, function)
        if step is not None and step.new is None:
            raise Unportable(f"{keyword}= of {function}")
        if step is not None and step.new is not None:
            self.record_change(original, f"{keyword}=", f"{step.new}=")
            updated = updated.with_changes(keyword=cst.Name(step.new))
        use = Argument(function=function, keyword=keyword, position=place)
        value = self._port_string(use, original.value, updated.value)
        if value is updated.value and here != function:
            value = self._port_string(replace(use, function=here), original.value, updated.value)
        if isinstance(value, cst.Name) and self.idioms.port_variable is not None:
            value = self._replace(original.value, value, self.idioms.port_variable(use, value.value), value.value)
        return updated if value is updated.value else updated.with_changes(value=value)

    def _find_home(self, function: str) -> str:
        """Return the name of a function in the release. Its old name if the release lacks it."""
        return self.names.find_successor(function) or function

    # ---------------------------------------------------------------------------------------- strings

    def visit_Assign(self, node: cst.Assign) -> None:
        if isinstance(node.value, cst.Call) and (maker := self.get_full_name(node.value.func)):
            self.made += [(name, maker) for target in node.targets if (name := dotted_name(target.target))]

    def leave_Assign(self, original_node: cst.Assign, updated_node: cst.Assign) -> cst.Assign:
        names = tuple(dotted_name(target.target) for target in original_node.targets)
        value = self._port_string(Assigned(names=names), original_node.value, updated_node.value)
        if isinstance(original_node.value, cst.Call) and isinstance(value, cst.Call):
            value = self.declare_result(original_node.value, value)
        return updated_node if value is updated_node.value else updated_node.with_changes(value=value)

    def leave_Subscript(self, original_node: cst.Subscript, updated_node: cst.Subscript) -> cst.BaseExpression:
        """Call a name that older releases write with brackets."""
        name = self.get_full_name(original_node.value) if self.idioms.subscripts else ""
        values = [one.slice.value for one in updated_node.slice if isinstance(one.slice, cst.Index)]
        if name not in self.idioms.subscripts or len(values) != len(updated_node.slice):
            return updated_node
        self.record_change(original_node, f"{name}[…]", f"{name}(…)", notation=True)
        comma = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
        rest = [cst.Arg(value=value, comma=comma) for value in values[:-1]]
        return cst.Call(func=updated_node.value, args=[*rest, cst.Arg(value=values[-1])])

    def _port_string(
        self, use: StringUse, original: cst.BaseExpression, updated: cst.BaseExpression
    ) -> cst.BaseExpression:
        """Return the expression that replaces a string literal in the release, or the literal itself."""
        if isinstance(updated, cst.List | cst.Tuple) and isinstance(original, type(updated)):
            if len(original.elements) != len(updated.elements):  # a list of flags that is already ported
                return updated
            pairs = zip(original.elements, updated.elements, strict=True)
            values = [self._port_string(use, old.value, new.value) for old, new in pairs]
            if all(value is new.value for value, new in zip(values, updated.elements, strict=True)):
                return updated
            return updated.with_changes(
                elements=[e.with_changes(value=v) for e, v in zip(updated.elements, values, strict=True)]
            )
        text = _read_string(original)
        if text is None:
            return updated
        if self.idioms.port_string is None or self._embeds_program(text):
            return updated
        return self._replace(original, updated, self.idioms.port_string(use, text), repr(text))

    def _replace(
        self, original: cst.CSTNode, updated: cst.BaseExpression, ported: Expression | None, shown: str
    ) -> cst.BaseExpression:
        if ported is None:
            return updated
        if ported.package:
            self.name_package(ported.package)
        self.record_change(original, shown, ported.code, notation=ported.notation)
        return cst.parse_expression(ported.code)

    def _embeds_program(self, text: str) -> bool:
        return self.idioms.find_embedded is not None and self.idioms.find_embedded(text) is not None

    def _port_embedded(self, original: cst.BaseExpression, text: str) -> str | None:
        """Return the ported text of a literal. None if the text is not a program, or needs no change."""
        found = self.idioms.find_embedded(text) if self.idioms.find_embedded is not None else None
        if found is None:
            return None
        if found.language == "mlir":
            ported, changes = port_mlir(text, self.names.words, self.idioms)
        else:
            ported, changes = port_python(f"{found.prelude}{text}", self.names, self.idioms)
            ported = ported.split("\n", found.prelude.count("\n"))[-1]
        if ported == text:
            return None
        start = self.get_metadata(metadata.PositionProvider, original).start.line - 1
        above = found.prelude.count("\n")
        self.changes += [
            replace(change, line=start + change.line - above) for change in changes if change.line > above
        ]
        return ported

    def _port_literal(self, original: cst.SimpleString) -> cst.BaseExpression | None:
        value = original.evaluated_value
        if isinstance(value, bytes) and not value.isascii():
            return None
        ported = self._port_embedded(original, value if isinstance(value, str) else value.decode("ascii"))
        return None if ported is None else cst.parse_expression(_write_literal(original, ported))

    def leave_FormattedString(
        self, original_node: cst.FormattedString, updated_node: cst.FormattedString
    ) -> cst.BaseExpression:
        """Port a program whose numbers or names are expressions. Numbers that occur nowhere else represent them."""
        parts = original_node.parts
        raw = "".join(part.value for part in parts if isinstance(part, cst.FormattedStringText))
        if "\\" in raw or _PLACEHOLDER in raw or len(parts) > MAX_PARTS:
            return updated_node
        written = {
            f"{_PLACEHOLDER}{at:03}": cst.Module([]).code_for_node(part)
            for at, part in enumerate(updated_node.parts)
            if not isinstance(part, cst.FormattedStringText)
        }
        names = iter(written)
        text = "".join(
            part.value.replace("{{", "{").replace("}}", "}")
            if isinstance(part, cst.FormattedStringText)
            else next(names)
            for part in parts
        )
        ported = self._port_embedded(original_node, text)
        if ported is None or original_node.end in ported:
            return updated_node
        ported = ported.replace("{", "{{").replace("}", "}}")
        for name, code in written.items():
            ported = ported.replace(name, code)
        return cst.parse_expression(f"{original_node.start}{ported}{original_node.end}")

    # ---------------------------------------------------------------------------------------- flags

    def leave_List(self, original_node: cst.List, updated_node: cst.List) -> cst.List:
        kept = self._port_flags(original_node.elements, updated_node.elements)
        return updated_node if kept is None else updated_node.with_changes(elements=kept)

    def leave_Tuple(self, original_node: cst.Tuple, updated_node: cst.Tuple) -> cst.Tuple:
        kept = self._port_flags(original_node.elements, updated_node.elements)
        return updated_node if kept is None else updated_node.with_changes(elements=kept)

    def _port_flags(
        self, original: Sequence[cst.BaseElement], updated: Sequence[cst.BaseElement]
    ) -> list[cst.BaseElement] | None:
        """Return the elements of a list with its flags ported, without those that the release does not need.

        None if no flag changes.
        """
        words = [_read_string(element.value) for element in original]
        if not self.idioms.flags_program or not any(word is not None and word.startswith("-") for word in words):
            return None
        first = words[0] or ""
        program = self.idioms.flags_program if first.startswith("-") or not first else first
        flags = select_flags(self.names.flags, (program,))
        ported = [self._port_flag(word, flags, old) for word, old in zip(words, original, strict=True)]
        if ported == words:
            return None
        elements = [
            element if new == word else element.with_changes(value=cst.SimpleString(repr(new)))
            for element, word, new in zip(updated, words, ported, strict=True)
            if new != "" or word == ""
        ]
        if elements and not isinstance(original[-1].comma, cst.Comma):
            elements[-1] = elements[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
        return elements

    def _port_flag(self, word: str | None, flags: dict[str, Rename], element: cst.BaseElement) -> str | None:
        if word is None:
            return None
        changes: list[NameChange] = []
        new = port_flag(word, flags, 0, changes)
        for change in changes:
            self.record_change(element, change.old, change.new)
        return new

    def leave_SimpleString(
        self, original_node: cst.SimpleString, updated_node: cst.SimpleString
    ) -> cst.BaseExpression:
        if (program := self._port_literal(original_node)) is not None:
            return program
        text = _read_string(original_node)
        if text is None:
            return updated_node
        option = self.options.get(text) if original_node in self.names_as_strings else None
        new = option or self.names.find_registered(text)
        if new == text:
            return updated_node
        self.record_change(original_node, repr(text), repr(new))
        return updated_node.with_changes(value=original_node.value.replace(text, new))

    def visit_Call(self, node: cst.Call) -> None:
        if self.idioms.call_forms and node.func not in self.rewritten:
            function = self.get_full_name(node.func)
            forms = (one for one in self.idioms.call_forms if one.function == function and self._surrounds(one, node))
            form = next((one for one in forms if not self._is_up_to_date(one, node)), None)
            if form is not None:
                self.rewritten[node.func] = form
        pattern = self.idioms.name_strings
        if pattern is not None and pattern.search(dotted_name(node.func) or _get_attribute(node.func)):
            self.names_as_strings.update(_find_name_strings(node))

    def _surrounds(self, form: CallForm, call: cst.Call) -> bool:
        inner = call.args[0].value if call.args else None
        return not form.around or (isinstance(inner, cst.Call) and self.get_full_name(inner.func) in form.around)

    def _is_up_to_date(self, form: CallForm, call: cst.Call) -> bool:
        """True if a call needs no other form: the release accepts it unchanged, or the program is of another kind."""
        if form.beside is not None and not form.beside.search(self.code):
            return True
        if form.still is None:
            return False
        count, names = form.still
        plain = [arg for arg in call.args if arg.keyword is None]
        keywords = {arg.keyword.value for arg in call.args if arg.keyword is not None}
        listed = len(plain) > 1 and isinstance(plain[1].value, cst.List | cst.Tuple)
        return len(plain) <= count and not listed and keywords <= names

    def leave_DictElement(self, original_node: cst.DictElement, updated_node: cst.DictElement) -> cst.DictElement:
        """Replace a wrapped constant by the plain constant, as the value of a key that is a name."""
        value = original_node.value
        if original_node.key not in self.names_as_strings or not isinstance(value, cst.Call):
            return updated_node
        if _read_string(original_node.key) not in self.options or len(value.args) != 1:
            return updated_node
        function, plain = dotted_name(value.func), dotted_name(value.args[0].value)
        if function.rpartition(".")[2] not in self.idioms.plain_constants or plain not in {"True", "False"}:
            return updated_node
        self.record_change(value, f"{function}({plain})", plain)
        return updated_node.with_changes(value=cst.Name(plain))


# ---------------------------------------------------------------------------------------------- syntax


def _name_arguments(
    form: CallForm, function: str, original: cst.Call, updated: cst.Call
) -> list[tuple[str, cst.Arg, cst.Arg]]:
    """Return the arguments of a call by parameter, without those that the ported call omits.

    Raises:
        Unportable: a parameter is unknown or missing, or the ported call would move or repeat an effect.
    """
    given: dict[str, tuple[str, cst.Arg, cst.Arg]] = {}
    for place, (old, new) in enumerate(zip(original.args, updated.args, strict=True)):
        spare = place < len(form.parameters) and not old.star
        name = old.keyword.value if old.keyword else form.parameters[place] if spare else ""
        if name not in form.parameters or name in given:
            raise Unportable(function)
        neutral = form.neutral.get(name)
        if neutral is not None and cst.Module(body=[]).code_for_node(old.value) not in neutral:
            raise Unportable(function)
        given[name] = (name, old, new)
    if any(name not in given and name not in {*form.defaults, *form.neutral} for name in form.parameters):
        raise Unportable(function)
    kept = [one for name, one in given.items() if f"{{{name}}}" in form.code]
    effects = [name for name, old, _ in kept if not isinstance(old.value, cst.BaseNumber | cst.SimpleString)]
    once = all(form.code.count(f"{{{name}}}") == 1 for name in effects)
    if not once or effects != sorted(effects, key=form.parameters.index):
        raise Unportable(function)
    return kept


def _get_attribute(node: cst.CSTNode) -> str:
    return node.attr.value if isinstance(node, cst.Attribute) else ""


def _read_string(node: cst.BaseExpression) -> str | None:
    if not isinstance(node, cst.SimpleString) or node.prefix:
        return None
    value = node.evaluated_value
    return value if isinstance(value, str) else None


def _write_literal(original: cst.SimpleString, text: str) -> str:
    """Write a string literal, if possible in the quotes of the literal that it replaces."""
    quote, prefix = original.quote, "b" if "b" in original.prefix.lower() else ""
    plain = len(quote) == 3 and "\\" not in text and quote not in text and not text.endswith(quote[0])
    return f"{prefix}{quote}{text}{quote}" if plain else f"{prefix}{text!r}"


def _find_name_strings(call: cst.Call) -> Iterator[cst.SimpleString]:
    """Yield the keys of dictionaries among the arguments, and a string that is the first argument."""
    for place, argument in enumerate(call.args):
        if isinstance(argument.value, cst.Dict):
            for element in argument.value.elements:
                if isinstance(element, cst.DictElement) and isinstance(element.key, cst.SimpleString):
                    yield element.key
        elif place == 0 and isinstance(argument.value, cst.SimpleString):
            yield argument.value
