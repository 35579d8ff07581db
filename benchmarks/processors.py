"""Kinds of processor that this machine can stand in for, as environment variables."""

PROCESSORS = {
    "host": {},
    "AVX2": {
        "NUMBA_CPU_NAME": "haswell",
        "NUMBA_CPU_FEATURES": "+avx2,+fma",
        "OPENBLAS_CORETYPE": "Haswell",
    },
    "SSE2": {"NUMBA_CPU_NAME": "x86-64", "NUMBA_CPU_FEATURES": ""},
}
