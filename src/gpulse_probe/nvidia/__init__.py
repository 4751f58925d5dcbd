"""NVIDIA cards through NVML, the library that comes with the driver."""
