#!/usr/bin/env python3
"""Draws the figures of docs/explanation/collectives.md into docs/figures.

    python3 scripts/draw_collectives.py              # write them
    python3 scripts/draw_collectives.py --check      # compare them with those in docs/figures; exit code 1 if one differs

Each figure shows ranks as rows of chunks, step by step. The steps are computed from the definition of the algorithm, not by hand.
Needs nothing beyond the standard library.
"""

import pathlib
import sys

FIGURES = pathlib.Path(__file__).resolve().parent.parent / "docs" / "figures"
FULL, PART, EMPTY, INK = "#2f7d32", "#f0b455", "#eef1f6", "#223"


def svg(name, title, width, height, body):
    """Writes one figure on a white background."""
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        'font-family="Helvetica, Arial, sans-serif" font-size="12">\n'
        f"<title>{title}</title>\n"
        '<defs><marker id="head" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="6" markerHeight="6" '
        'orient="auto"><path d="M0 0L10 5L0 10z" fill="#2c5fb3"/></marker></defs>\n'
        f'<rect width="{width}" height="{height}" rx="6" fill="#ffffff"/>\n'
    )
    drawn = head + "\n".join(body) + "\n</svg>\n"
    path = FIGURES / f"{name}.svg"
    if "--check" not in sys.argv:
        path.write_text(drawn)
    elif path.read_text() != drawn:
        sys.exit(f"{path} is not current; hint: python3 scripts/draw_collectives.py")


def text(x, y, words, anchor="middle", colour=INK, weight="normal"):
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}" fill="{colour}" font-weight="{weight}">{words}</text>'


def arrow(x1, y1, x2, y2, bend=0):
    middle = f"Q{(x1 + x2) / 2 + bend} {(y1 + y2) / 2} {x2} {y2}" if bend else f"L{x2} {y2}"
    return f'<path d="M{x1} {y1}{middle}" stroke="#2c5fb3" stroke-width="1.6" fill="none" marker-end="url(#head)"/>'


def panel(x, y, ranks, held, step, moves):
    """One state: per rank a row of chunks, coloured by how many inputs each holds, and the messages that led here."""
    body = [text(x + 14 + ranks * 13, y, step, weight="bold")]
    for rank in range(ranks):
        top = y + 12 + rank * 32
        body.append(text(x, top + 16, f"r{rank}", "end"))
        for chunk in range(ranks):
            count = len(held[rank][chunk])
            colour = FULL if count == ranks else PART if count > 1 else EMPTY
            ink = "#ffffff" if count == ranks else INK
            body.append(
                f'<rect x="{x + 8 + chunk * 26}" y="{top}" width="24" height="22" fill="{colour}" stroke="#99a"/>'
            )
            body.append(text(x + 20 + chunk * 26, top + 16, count, colour=ink))
    right = x + 8 + ranks * 26 + 2
    for source, target in moves:
        far = abs(source - target)
        y1, y2 = y + 23 + source * 32, y + 23 + target * 32
        body.append(arrow(right, y1 + (3 if target > source else -3), right, y2 + (-3 if target > source else 3), 20 + 12 * far))
    return body


def states(name, title, ranks, phases):
    """Plays rounds of (source, target, chunk, is_final) on sets of inputs, and draws every state."""
    held = [[{rank} for _ in range(ranks)] for rank in range(ranks)]
    wide = 26 * ranks + 78
    body = panel(36, 26, ranks, held, "start", [])
    for number, (label, round_) in enumerate(phases, 1):
        sent = [(target, chunk, set(held[source][chunk])) for source, target, chunk in round_]
        for target, chunk, inputs in sent:
            held[target][chunk] |= inputs
        moves = sorted({(source, target) for source, target, _ in round_})
        body += panel(36 + number * wide, 26, ranks, held, label, moves)
    assert all(len(chunk) == ranks for row in held for chunk in row), name
    height = 26 + 12 + ranks * 32 + 34
    legend = "A box is a chunk; its number is the count of inputs that it contains. Green: finished. Arrows: who sent to whom in this step."
    body.append(text(36, height - 12, legend, "start", "#556"))
    svg(name, title, max(36 + (len(phases) + 1) * wide, 760), height, body)


def ring(ranks=4):
    phases = []
    for step in range(ranks - 1):
        # The partial result of chunk c starts at rank c + 1 and reaches rank c.
        moves = [((chunk + 1 + step) % ranks, (chunk + 2 + step) % ranks, chunk) for chunk in range(ranks)]
        phases.append((f"reduce-scatter {step + 1}", moves))
    for step in range(ranks - 1):
        moves = [((chunk + step) % ranks, (chunk + 1 + step) % ranks, chunk) for chunk in range(ranks)]
        phases.append((f"all-gather {step + 1}", moves))
    states("ring", "Ring all-reduce", ranks, phases)


def two_shot(ranks=4):
    pairs = [(a, b) for a in range(ranks) for b in range(ranks) if a != b]
    phases = [
        ("reduce-scatter", [(a, b, b) for a, b in pairs]),
        ("all-gather", [(a, b, a) for a, b in pairs]),
    ]
    states("two-shot", "Two-shot all-reduce", ranks, phases)


def halving_doubling(ranks=4):
    rounds = []
    distance = 1
    while distance < ranks:
        moves = []
        for rank in range(ranks):
            partner = rank ^ distance
            # A rank gives away what agrees with the partner in this bit, of what it still holds: lower bits agree with its own.
            mask = 2 * distance - 1
            moves += [(rank, partner, chunk) for chunk in range(ranks) if chunk & mask == partner & mask]
        rounds.append(moves)
        distance *= 2
    phases = [(f"halving {number}", moves) for number, moves in enumerate(rounds, 1)]
    for number, moves in enumerate(reversed(rounds), 1):
        phases.append((f"doubling {number}", [(target, source, chunk) for source, target, chunk in moves]))
    states("halving-doubling", "Recursive halving and doubling", ranks, phases)


def binomial(ranks=8):
    body, has = [], {0}
    x = lambda rank: 60 + rank * 80
    distance, number = ranks // 2, 0
    while distance:
        y = 40 + number * 70
        body.append(text(16, y + 5, f"{number + 1}", "start", weight="bold"))
        for source in sorted(has):
            bend = 60 + 12 * distance
            x1, x2 = x(source), x(source + distance)
            body.append(
                f'<path d="M{x1 + 12} {y}Q{(x1 + x2) / 2} {y + bend / 3} {x2 - 13} {y}" stroke="#2c5fb3" '
                'stroke-width="1.6" fill="none" marker-end="url(#head)"/>'
            )
        gained = {source + distance for source in has}
        for rank in range(ranks):
            colour = FULL if rank in has else PART if rank in gained else EMPTY
            ink = "#ffffff" if rank in has else INK
            body.append(f'<circle cx="{x(rank)}" cy="{y}" r="13" fill="{colour}" stroke="#99a"/>')
            body.append(text(x(rank), y + 4, rank, colour=ink))
        has |= gained
        distance //= 2
        number += 1
    assert len(has) == ranks
    body.append(text(16, 40 + number * 70 - 14, "Rows are rounds. Green: has the array. Orange: receives it in this round.", "start", "#556"))
    svg("binomial", "Binomial broadcast", 680, 40 + number * 70, body)


if __name__ == "__main__":
    ring()
    two_shot()
    halving_doubling()
    binomial()
