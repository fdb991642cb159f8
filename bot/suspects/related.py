"""Synonyms in ML compilers, and the folders of their platforms. Data of ``bot.suspects.rank``.

Each entry connects a user's word (a device, a word of an error, a framework's operator) with the words of commits for
the part that handles it. Words of a single compiler are in the vocabulary of its toolchain.
"""

from __future__ import annotations

SAME = {
    "vulkan": "spirv",
    "dominate": "ssa",
    "indexput": "scatter",
    "onnxruntime": "onnx",
    "ort": "onnx",
}
"""A word of reports, without separators, to the words that commits use for it."""

WORDS_OF_PLATFORMS = {
    "web": "web wasm webgpu javascript browser",
    "android": "android adreno hexagon",
    "hexagon": "hexagon dsp",
    "ios": "ios iphone apple metal",
    "jvm": "java jvm",
    "golang": "golang go",
    "rust": "rust cargo",
    "webgpu": "webgpu web wgsl",
    "metal": "metal apple macos ios m1",
    "emscripten": "web wasm browser emscripten",
    "windows": "windows msvc",
    "riscv": "riscv",
}
"""A folder's name to the words of a report that may be related to it."""

TARGETS = {
    "cpu": "cpu x86 aarch64 arm riscv",
    "cuda": "cuda nvidia nvgpu nvvm gpu",
    "rocm": "rocm hip amdgpu rocdl amd gfx gpu",
    "vulkan": "vulkan spirv gpu",
    "metal": "metal spirv gpu",
}
"""A target to its words in reports, labels of commits (``[ROCm]``) and paths. Toolchains add words of their own."""
