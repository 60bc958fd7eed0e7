# SPDX-License-Identifier: Apache-2.0
"""Renditions as people write them."""

from __future__ import annotations


def spelled(rendition: str) -> str:
    """The rendition as the bus takes it: people may write `,` for `;`, which a shell leaves alone."""
    return rendition.replace(",", ";")
