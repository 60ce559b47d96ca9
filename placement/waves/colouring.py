"""Edge colouring of bipartite graphs: the fewest waves for moves from one sender to one receiver each.

Method: a vertex may be in one edge of each colour; the next edge gets a colour that is free at both its ends. Where
there is none, a colour free at one end is made free at the other by swapping two colours along the path that they make
(Kempe's chain), which never comes back to the edge in a graph without odd cycles. So as many colours as the largest
degree are enough (D. König, 1916). A broker that may send several replicas a wave counts as several vertices.
Cost: O(edges * colours / word) and the length of the chains.
"""

from __future__ import annotations

from collections.abc import Sequence

Vertex = tuple[int, int, int]


def colour_edges(edges: Sequence[tuple[int, int]], colours: int) -> list[int]:
    """The colour of each edge, from 0.

    Args:
        edges: sender and receiver of each move; the first ones get the lowest colours.
        colours: waves to use. A broker with d edges is split into ``ceil(d / colours)`` vertices, so that in no wave it
            has more edges than that.
    """
    colouring = _Colouring(colours)
    seen: dict[tuple[int, int], int] = {}
    for number, ends in enumerate(edges):
        vertices = []
        for side, broker in enumerate(ends):
            count = seen.get((side, broker), 0)
            seen[side, broker] = count + 1
            vertices.append((side, broker, count // colours))
        colouring.add(number, vertices[0], vertices[1])
    return colouring.result


class _Colouring:
    """Edges coloured so far: the edge of each colour at each vertex, and the colours free there as a bit mask."""

    __slots__ = ("_all", "_at", "_ends", "_free", "result")

    def __init__(self, colours: int) -> None:
        self._all = (1 << colours) - 1
        self._at: dict[tuple[Vertex, int], int] = {}
        self._free: dict[Vertex, int] = {}
        self._ends: list[tuple[Vertex, Vertex]] = []
        self.result: list[int] = []

    def add(self, number: int, sender: Vertex, receiver: Vertex) -> None:
        """Give the next edge a colour."""
        self._ends.append((sender, receiver))
        here, there = self._free.get(sender, self._all), self._free.get(receiver, self._all)
        colour = _lowest(here & there or here)
        if not here & there:
            self._swap(receiver, colour, _lowest(there))
        self.result.append(colour)
        self._set(number, colour)

    def _swap(self, start: Vertex, colour: int, other: int) -> None:
        """Swap two colours along the path that begins with the first of them."""
        path, vertex, follow = [], start, colour
        while (edge := self._at.get((vertex, follow))) is not None:
            path.append(edge)
            sender, receiver = self._ends[edge]
            vertex = receiver if vertex == sender else sender
            follow = other if follow == colour else colour
        for edge in path:
            for end in self._ends[edge]:
                del self._at[end, self.result[edge]]
                self._free[end] |= 1 << self.result[edge]
        for edge in path:
            self.result[edge] = other if self.result[edge] == colour else colour
            self._set(edge, self.result[edge])

    def _set(self, edge: int, colour: int) -> None:
        for end in self._ends[edge]:
            self._at[end, colour] = edge
            self._free[end] = self._free.get(end, self._all) & ~(1 << colour)


def _lowest(mask: int) -> int:
    return (mask & -mask).bit_length() - 1
