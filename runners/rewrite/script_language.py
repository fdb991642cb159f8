"""Port the compiler's language that is embedded in Python: decorated functions, bindings, contexts. Pure."""

from __future__ import annotations

import libcst as cst

from runners.core.toolchain.rewriting import BindingForm, DeclaringCall, DecoratorSwitch, Idioms
from runners.rewrite.imports import ImportPorter
from runners.rewrite.names import Names
from runners.rewrite.scope import dotted_name


class ScriptPorter(ImportPorter):
    """Knows the surrounding functions, whose decorators say in which language they are written."""

    def __init__(self, names: Names, idioms: Idioms) -> None:
        super().__init__(names)
        self.idioms = idioms
        self._bindings: list[tuple[BindingForm, ...]] = []
        """Forms of bindings in each surrounding function."""
        self._declaring: list[tuple[DeclaringCall, ...]] = []

    @property
    def is_in_script(self) -> bool:
        """True within a function of the embedded language."""
        return bool(self._bindings and self._bindings[-1])

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:
        names = {self.get_full_name(_get_function(one)) for one in node.decorators}
        self._bindings.append(tuple(form for form in self.idioms.bindings if names & form.decorators))
        self._declaring.append(tuple(form for form in self.idioms.declaring if names & form.decorators))

    def leave_FunctionDef(self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef) -> cst.FunctionDef:
        self._bindings.pop()
        self._declaring.pop()
        return updated_node

    def leave_AnnAssign(self, original_node: cst.AnnAssign, updated_node: cst.AnnAssign) -> cst.AnnAssign:
        """Write the annotation of a binding in the form of the release, in a function of the compiler's language."""
        annotation = original_node.annotation.annotation
        called = isinstance(annotation, cst.Call)
        kind = annotation.func if isinstance(annotation, cst.Call) else annotation
        home = dotted_name(kind).rpartition(".")[0]
        name = self.get_full_name(kind)
        for form in self._bindings[-1] if self._bindings and original_node.value is not None and home else ():
            if not form.types.fullmatch(f"{name}()" if called else name):
                continue
            old = cst.Module(body=[]).code_for_node(updated_node.annotation.annotation)
            new = form.code.format_map({"home": home, "type": old})
            self.record_change(original_node, f"{name} = …", f"{new} = …", notation=True)
            return updated_node.with_changes(
                annotation=updated_node.annotation.with_changes(annotation=cst.parse_expression(new))
            )
        return updated_node

    def declare_result(self, original: cst.Call, updated: cst.Call) -> cst.Call:
        """Call the function that declares a result, in place of the function that makes it."""
        name = self.get_full_name(original.func)
        keywords = {argument.keyword.value for argument in original.args if argument.keyword is not None}
        for form in self._declaring[-1] if self._declaring and isinstance(updated.func, cst.Attribute) else ():
            if name == form.function and form.keyword in keywords:
                self.record_change(original, f"{name}(…)", f"{form.name}(…)", notation=True)
                return updated.with_changes(func=updated.func.with_changes(attr=cst.Name(form.name)))
        return updated

    def leave_With(
        self, original_node: cst.With, updated_node: cst.With
    ) -> cst.With | cst.FlattenSentinel[cst.BaseStatement]:
        """Write the calls of a ``with`` as statements before its body, if the release no longer enters them."""
        calls = [item.item.func for item in original_node.items if isinstance(item.item, cst.Call)]
        names = [self.get_full_name(call) for call in calls] if self.idioms.flat_contexts else []
        body = updated_node.body
        flat = len(names) == len(original_node.items) and self.idioms.flat_contexts.issuperset(names)
        flat = flat and all(i.asname is None or isinstance(i.asname.name, cst.Name) for i in original_node.items)
        if not names or not flat or not isinstance(body, cst.IndentedBlock):
            return updated_node
        first, *rest = [_make_statement(item) for item in updated_node.items]
        for name in names:
            self.record_change(original_node, f"with {name}(…)", f"{name}(…)", notation=True)
        first = first.with_changes(leading_lines=updated_node.leading_lines)
        return cst.FlattenSentinel([first, *rest, *body.body])

    def leave_Decorator(self, original_node: cst.Decorator, updated_node: cst.Decorator) -> cst.Decorator:
        called = isinstance(original_node.decorator, cst.Call)
        name = self.get_full_name(_get_function(original_node))
        for switch in self.idioms.switched_on:
            if name in switch.decorators:
                return self._switch_on(switch, original_node, updated_node)
        for switch in self.idioms.switched_off:
            if called and name and self.names.find_successor(name) in switch.decorators:
                return self._switch_off(switch, original_node, updated_node)
        return updated_node

    def _switch_on(self, switch: DecoratorSwitch, original: cst.Decorator, updated: cst.Decorator) -> cst.Decorator:
        node = updated.decorator
        call = node if isinstance(node, cst.Call) else cst.Call(func=node)
        if any(arg.keyword is not None and arg.keyword.value == switch.keyword for arg in call.args):
            return updated
        added = cst.Arg(keyword=cst.Name(switch.keyword), value=cst.Name("True"), equal=_TIGHT)
        shown = _show_decorator(original)
        self.record_change(original, shown, f"{shown}({switch.keyword}=True)")
        return updated.with_changes(decorator=call.with_changes(args=[*call.args, added]))

    def _switch_off(self, switch: DecoratorSwitch, original: cst.Decorator, updated: cst.Decorator) -> cst.Decorator:
        call = cst.ensure_type(updated.decorator, cst.Call)
        kept = [arg for arg in call.args if arg.keyword is None or arg.keyword.value != switch.keyword]
        if len(kept) == len(call.args):
            return updated
        shown = _show_decorator(original)
        self.record_change(original, f"{shown}({switch.keyword}=True)", shown)
        if not kept:
            return updated.with_changes(decorator=call.func)
        kept[-1] = kept[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
        return updated.with_changes(decorator=call.with_changes(args=kept))


_TIGHT = cst.AssignEqual(whitespace_before=cst.SimpleWhitespace(""), whitespace_after=cst.SimpleWhitespace(""))


def _make_statement(item: cst.WithItem) -> cst.SimpleStatementLine:
    """Return the statement that calls what a ``with`` enters, and binds its name."""
    if item.asname is None:
        return cst.SimpleStatementLine(body=[cst.Expr(value=item.item)])
    target = cst.ensure_type(item.asname.name, cst.Name)
    return cst.SimpleStatementLine(body=[cst.Assign(targets=[cst.AssignTarget(target=target)], value=item.item)])


def _show_decorator(node: cst.Decorator) -> str:
    """Return ``@a.b`` for ``@a.b(…)``."""
    return f"@{dotted_name(_get_function(node))}"


def _get_function(node: cst.Decorator) -> cst.BaseExpression:
    return node.decorator.func if isinstance(node.decorator, cst.Call) else node.decorator
