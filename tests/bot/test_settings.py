"""Settings: the file, the profile and the inputs together, and the message for a fault."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, strategies as st

from bot.settings import PROFILES, Settings, WithoutCode, load_settings, make_schema
from bot.verdict.verdict import VerdictKind
from runners.core.errors import UserError
from runners.toolchains import find_device, find_toolchain
from tests.bot.forge.test_source import EXTREMES

ROOT = Path(__file__).parent.parent.parent


def test_without_a_file_there_are_defaults() -> None:
    """A repository needs no configuration."""
    assert load_settings(None) == load_settings(b"") == load_settings(b"# nothing yet\n") == Settings()


def test_the_file_overrides_the_profile_and_an_input_the_file() -> None:
    """A key inside a section does not change the other keys of the section."""
    file = b"profile: tvm\nevents: {label: again}\nlimits: {timeout: 30, probes: 5}\n"
    settings = load_settings(file, {"timeout": "60", "bisect": "false", "devices": "", "toolchain": "iree"})
    assert "type: doc" in settings.events.skip
    assert settings.events.label == "again"
    assert (settings.limits.timeout, settings.limits.probes) == (60, 5)
    assert (settings.toolchain, settings.bisect) == ("iree", False)


@pytest.mark.parametrize(
    ("file", "said"),
    [
        ("profil: tvm", "'profil'; did you mean 'profile'?"),
        ("profile: tvmm", "'tvmm': the profiles are tvm, iree"),
        ("timeout: 3", "did you mean 'limits.timeout'?"),
        ("budgets: {usr: 3}", "'budgets.usr'; did you mean 'budgets.user'?"),
        ("limits: {versions_per_job: 3}", "did you mean 'limits.versions-per-job'?"),
        ("zzzzz: 3", "the keys are profile, toolchain"),
        ("budgets: {issue: 17}", "budgets.issue: expected `int` <= 16"),
        ("limits: {timeout: 0}", "limits.timeout: expected `int` >= 1"),
        ("bisect: maybe", "bisect: expected `bool`"),
        ("sandbox: none", "sandbox: "),
        ("without-code: silence", "did you mean 'silent'?"),
        ("labels: {confirmd: x}", "did you mean 'confirmed'?"),
        ("machines: {Cuda: [cuda]}", "machines: "),
        ("devices: [$(id)]", "devices[0]: "),
        ("a: &x [1]\nb: *x", "alias"),
        ("[1", "not valid YAML in line 1"),
        ("- 1", "holds no settings"),
        ("1: 2", "holds no settings"),
        ("{" * 20 + "}" * 20, "too deep"),
        ("a: [" + "1," * 2000 + "]", "too large"),
        ("a: " + "x" * 40_000, "bytes"),
        ("!!python/object/apply:os.system ['id']", "not valid YAML"),
    ],
)
def test_a_fault_is_named_with_its_key_and_the_nearest_one(file: str, said: str) -> None:
    """The message begins with the name of the file."""
    with pytest.raises(UserError, match=r"^\.github/reprobot\.yml") as raised:
        load_settings(file.encode())
    assert said in str(raised.value)


@pytest.mark.parametrize(
    ("inputs", "said"),
    [({"bisect": "yes"}, "true or false"), ({"timeout": "1m"}, "seconds"), ({"versons": "1"}, "there is no input")],
)
def test_a_wrong_input_is_named(inputs: dict[str, str], said: str) -> None:
    with pytest.raises(UserError, match=said):
        load_settings(None, inputs)


@given(st.binary(max_size=300))
def test_any_bytes_are_settings_or_a_user_error(file: bytes) -> None:
    """No other exception is raised."""
    with suppress(UserError):
        load_settings(file)


@pytest.mark.parametrize("field", ["limits: {timeout: %s}", "bisect: %s", "toolchain: %s", "versions: %s", "%s: 1"])
def test_extreme_values_are_faults(field: str) -> None:
    """Base 60, thousands of digits and tags are refused with a message, or are plain text where text is due."""
    for value in EXTREMES:
        with suppress(UserError):
            settings = load_settings(field.replace("%s", value).encode())
            assert isinstance(settings.limits.timeout, int | None)
            msgspec.json.encode(settings)


@pytest.mark.parametrize("value", [":".join("1" * 3000), ":".join("1" * 300) + ".5", "9" * 5000, "0x" + "f" * 9000])
def test_an_extreme_number_is_no_setting(value: str) -> None:
    """The message shows the beginning of the number."""
    with pytest.raises(UserError, match="at most 18 decimal digits"):
        load_settings(f"limits: {{timeout: {value}}}\n".encode())


def test_every_key_is_described_and_has_a_default() -> None:
    """Editors show the description, and an empty file is complete."""
    made = make_schema()
    for name, part in made["$defs"].items():
        for key, field in part.get("properties", {}).items():
            assert field.get("description"), f"{name}.{key}"
            assert "default" in field, f"{name}.{key}"


def test_the_published_schema_is_the_codes_own() -> None:
    """A commit that changes a setting also publishes the schema, made with `python -m bot.settings`."""
    published = json.loads((ROOT / "docs/reprobot.schema.json").read_text(encoding="utf-8"))
    assert published == json.loads(json.dumps(make_schema()))


@pytest.mark.parametrize("name", PROFILES)
def test_a_profile_is_valid_and_its_devices_exist(name: str) -> None:
    settings = load_settings(f"profile: {name}".encode())
    assert settings.toolchain is not None
    toolchain = find_toolchain(settings.toolchain)
    assert all(find_device(toolchain, device) is not None for device in settings.devices)


def test_labels_can_be_renamed_and_switched_off() -> None:
    """A verdict without a name of its own keeps the usual one."""
    named = load_settings(b"labels: {confirmed: 'status: confirmed'}")
    assert named.choose_labels(VerdictKind.CONFIRMED, ("repro: confirmed",)) == ("status: confirmed",)
    assert named.choose_labels(VerdictKind.FLAKY, ("repro: flaky",)) == ("repro: flaky",)
    assert load_settings(b"labels: false").choose_labels(VerdictKind.FLAKY, ("repro: flaky",)) == ()


def test_settings_survive_serialization_in_a_plan() -> None:
    """The plan carries them from the planning job to the reporting job."""
    settings = load_settings(b"profile: iree\nmachines: {lab: [cuda, hip]}\nlabels: {flaky: x}\nwithout-code: ask\n")
    assert msgspec.json.decode(msgspec.json.encode(settings), type=Settings) == settings
    assert settings.without_code is WithoutCode.ASK
