"""Find the devices of this machine, share a GPU among runs, and provide a Vulkan driver for the CPU.

`detect` looks for device files and driver libraries, `gpu` checks and locks an NVIDIA GPU around each run, and
`lavapipe` prepares Mesa's software driver.
"""
