# SPDX-License-Identifier: Apache-2.0
"""Pictures as self-contained SVG text, on a paper of their own, so that they read alike on light and dark pages."""
import html
import math

PALETTE = ("#0072B2", "#D55E00", "#E69F00", "#009E73", "#56B4E9", "#CC79A7", "#8C8C8C", "#6A4C93", "#C8B900")
INK, FAINT, RULE, PAPER = "#1f2328", "#57606a", "#d0d7de", "#ffffff"
WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 420, 300, 58, 40, 14, 44  # of a panel


def text(x, y, words, size=11, anchor="start", fill=INK, weight="normal"):
    return (f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" fill="{fill}" font-weight="{weight}">'
            f"{html.escape(str(words))}</text>")


def document(width, height, title, body):
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" font-family="sans-serif" role="img">'
            f"<title>{html.escape(title)}</title><rect width=\"100%\" height=\"100%\" fill=\"{PAPER}\"/>\n" + "\n".join(body) + "\n</svg>\n")


def legend(names, width, y):
    """One line after the other, as many names in each as fit; what is drawn, and its height."""
    out, x = [], 16
    for i, name in enumerate(names):
        wide = 34 + 6.2 * len(name)
        if x + wide > width:
            x, y = 16, y + 16
        colour = PALETTE[i % len(PALETTE)]
        out.append(f'<line x1="{x}" y1="{y - 4}" x2="{x + 16}" y2="{y - 4}" stroke="{colour}" stroke-width="3"/>')
        out.append(text(x + 20, y, name, 10, fill=FAINT))
        x += wide
    return out, y


def decades(low, high):
    return range(math.floor(math.log10(low) + 1e-9), math.ceil(math.log10(high) - 1e-9) + 1)


def panel(x0, y0, title, series, names, x_text, y_text):
    points = [point for of in series.values() for point in of]
    xs = sorted({x for x, _ in points})
    powers = decades(min(y for _, y in points), max(y for _, y in points))
    low, high = powers[0], max(powers[-1], powers[0] + 1)
    left, right, top, bottom = x0 + LEFT, x0 + WIDTH - RIGHT, y0 + TOP, y0 + HEIGHT - BOTTOM
    span = math.log(xs[-1] / xs[0]) or 1

    def at(x, y):
        return left + (right - left) * math.log(x / xs[0]) / span, bottom - (bottom - top) * (math.log10(y) - low) / (high - low)

    out = [text(x0 + LEFT, y0 + 24, title, 13, weight="bold")]
    for power in range(low, high + 1):
        _, y = at(xs[0], 10.0 ** power)
        out.append(f'<line x1="{left}" y1="{y:.1f}" x2="{right}" y2="{y:.1f}" stroke="{RULE}"/>')
        out.append(text(left - 6, y + 4, y_text(10.0 ** power), 10, "end", FAINT))
    for i, x in enumerate(xs):
        if i % 2 == 0 or len(xs) < 7:
            out.append(text(at(x, 1)[0], bottom + 16, x_text(x), 9, "middle", FAINT))
    for i, name in enumerate(names):
        if series.get(name):
            path = " ".join(f"{'L' if n else 'M'}{at(*p)[0]:.1f} {at(*p)[1]:.1f}" for n, p in enumerate(sorted(series[name])))
            out.append(f'<path d="{path}" fill="none" stroke="{PALETTE[i % len(PALETTE)]}" stroke-width="{3 if i == 0 else 1.5}"/>')
    return out


def lines(title, panels, x_text, y_text):
    """Panels [(title, {name: [(x, y)]})] beside each other, both axes logarithmic, all numbers above 0."""
    panels = [(head, {name: of for name, of in series.items() if of}) for head, series in panels]
    panels = [(head, series) for head, series in panels if series]
    if not panels:
        return None
    names = list(dict.fromkeys(name for _, series in panels for name in series))
    width = max(WIDTH * len(panels), 480)
    body = [text(16, 22, title, 14, weight="bold")]
    for i, (head, series) in enumerate(panels):
        body += panel(WIDTH * i, 22, head, series, names, x_text, y_text)
    words, y = legend(names, width, HEIGHT + 36)
    return document(width, y + 14, title, body + words)


def bars(title, groups, unit, mark=None):
    """Groups [(label, {name: value})] of bars from 0; `mark`: a value with a line across all of them."""
    names = list(dict.fromkeys(name for _, of in groups for name in of))
    if not names:
        return None
    most = max([value for _, of in groups for value in of.values()] + [mark or 0]) or 1
    left, width, y = 170, 640, 40
    scale = (width - left - 70) / most
    body = [text(16, 22, title, 14, weight="bold")]
    for label, of in groups:
        middle = y + 13 * len(of) / 2 + 4
        body.append(text(left - 8, middle, label, 10, "end", FAINT))
        for name, value in of.items():
            colour = PALETTE[names.index(name) % len(PALETTE)]
            body.append(f'<rect x="{left}" y="{y + 1:.1f}" width="{max(value * scale, 0.5):.1f}" height="11" fill="{colour}"/>')
            body.append(text(left + value * scale + 4, y + 10, f"{value:.3g}{unit}", 9, fill=FAINT))
            y += 13
        y += 7
    if mark is not None:
        body.append(f'<line x1="{left + mark * scale:.1f}" y1="36" x2="{left + mark * scale:.1f}" y2="{y}" stroke="{INK}" '
                    'stroke-dasharray="3 3"/>')
    words, y = legend(names, width, y + 14)
    return document(width, y + 12, title, body + words)
