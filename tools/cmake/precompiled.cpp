// Empty: see windtunnel_precompiled in layer.cmake.
