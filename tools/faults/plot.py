"""Draws the bounds of findings against the measured gains of removing the faults, as an SVG picture."""

import math

SIZE, LEFT, BELOW, MOST = 360, 48, 40, 8.0  # pixels; the largest factor drawn
TICKS = (1, 1.5, 2, 3, 4, 6, 8)


def _at(factor):
    return math.log(min(max(factor, 1.0), MOST)) / math.log(MOST) * SIZE


def _x(factor):
    return LEFT + _at(factor)


def _y(factor):
    return 10 + SIZE - _at(factor)


def picture(points):
    """`points`: (gain, bound) of each fault. Above the line the bound holds; below it, more was gained."""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + SIZE + 10}" height="{SIZE + BELOW + 10}" '
        'font-family="sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="white"/>',
    ]
    for tick in TICKS:
        x, y = _x(tick), _y(tick)
        parts += [
            f'<path d="M{x:.1f} 10V{10 + SIZE}M{LEFT} {y:.1f}H{LEFT + SIZE}" stroke="#ddd"/>',
            f'<text x="{x:.1f}" y="{SIZE + 26}" text-anchor="middle">{tick}x</text>',
            f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{tick}x</text>',
        ]
    parts.append(f'<path d="M{_x(1)} {_y(1)}L{_x(MOST)} {_y(MOST)}" stroke="#888" stroke-dasharray="4 3"/>')
    for gain, bound in points:
        held = "#1f6fb2" if bound >= gain else "#c8502d"
        parts.append(
            f'<circle cx="{_x(gain):.1f}" cy="{_y(bound):.1f}" r="3.5" fill="{held}" fill-opacity="0.7"/>'
        )
    parts += [
        f'<text x="{LEFT + SIZE / 2}" y="{SIZE + 44}" text-anchor="middle">gain of removing the fault</text>',
        f'<text transform="translate(12 {10 + SIZE / 2}) rotate(-90)" text-anchor="middle">bound</text>',
        "</svg>",
    ]
    return "\n".join(parts) + "\n"
