# SPDX-License-Identifier: Apache-2.0
"""Measures the bus on this machine, beside others that do the same, in one run."""
