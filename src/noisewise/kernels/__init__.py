"""Compiled steps: arrays and integer link codes in, arrays out. Only here numba is imported."""

from ..supported import check_numba

check_numba()
