#!/bin/sh
# Mesa's Vulkan driver for the CPU under a name that every IREE runtime accepts: see runners/hardware/lavapipe.py, which does
# the same for sandboxes that show the host's system.
set -eu
original=$(find /usr/lib -name libvulkan_lvp.so | head -n 1)
mkdir -p /opt/vulkan
LC_ALL=C sed 's/llvmpipe (LLVM/lavapipe (LLVM/' "$original" >/opt/vulkan/libvulkan_lvp.so
[ "$(LC_ALL=C grep -c 'lavapipe (LLVM' /opt/vulkan/libvulkan_lvp.so)" = 1 ]
[ "$(wc -c <"$original")" = "$(wc -c </opt/vulkan/libvulkan_lvp.so)" ]
cat >/opt/vulkan/icd.json <<'JSON'
{"file_format_version": "1.0.0", "ICD": {"library_path": "./libvulkan_lvp.so", "api_version": "1.1.0"}}
JSON
chmod -R a+rX /opt/vulkan
# The drivers of graphics cards, and what they alone use.
rm -f /usr/lib/*/libvulkan_intel*.so /usr/lib/*/libvulkan_radeon.so /usr/share/vulkan/icd.d/intel* /usr/share/vulkan/icd.d/radeon*
