"""What the check says, as HTML that is read in light and in dark and wraps in a narrow window."""

import re
from html import escape
from typing import Any

# Said twice, the class outweighs JupyterLab's own rules for what stands in an output.
_STYLE = """<style>
.acheck{max-width:60em;line-height:1.45;overflow-wrap:anywhere;font-size:.95em}
.acheck .t{font-weight:600;margin:.2em 0 .5em}
.acheck.acheck ul{list-style:none;margin:0;padding:0}
.acheck.acheck p{margin:.4em 0}
.acheck li{margin:.25em 0;padding-left:6.2em;text-indent:-6.2em}
.acheck li>*{text-indent:0}
.acheck .m{display:inline-block;width:5.7em;margin-right:.5em;font-weight:600;text-indent:0}
.acheck .ok .m{color:#1a7f37}.acheck .no .m{color:#cf222e}
.acheck .p{border-left:3px solid #cf222e;padding-left:.6em;margin:.15em 0}
.acheck .b{border:2px solid #bf8700;border-radius:4px;background:rgba(191,135,0,.12);padding:.4em .7em;margin:.6em 0}
.acheck .w{border:2px dashed #bf8700;border-radius:4px;padding:.4em .7em;margin:.3em 0}
.acheck.acheck pre,.acheck code{white-space:pre-wrap;overflow-wrap:anywhere;color:inherit}
.acheck.acheck pre,.acheck code{background:rgba(127,127,127,.12)}
.acheck.acheck pre{margin:.15em 0;padding:.3em .6em;max-height:12em;overflow:auto;word-break:normal}
.acheck.acheck pre.b{max-height:none;margin:.6em 0;padding:.4em .7em;border:2px solid #bf8700}
.acheck.acheck pre.b{background:rgba(191,135,0,.12);font-family:var(--jp-code-font-family,monospace)}
.acheck .two{display:flex;flex-wrap:wrap;gap:.4em 1.6em;margin:.3em 0}
.acheck .two>div{max-width:100%;overflow-x:auto}
.acheck .two table{border-collapse:collapse;font-variant-numeric:tabular-nums;font-size:.9em;color:inherit}
.acheck .two td{padding:.1em .5em;text-align:right;border:1px solid rgba(127,127,127,.35);background:none;color:inherit}
.acheck .two td{white-space:nowrap}
.acheck .two td.x{background:rgba(207,34,46,.2);font-weight:700;text-decoration:underline}
.acheck summary{cursor:pointer;margin:.4em 0}
.acheck .s td,.acheck .s th{text-align:left;padding:.15em .8em .15em 0}
.acheck .s{border-collapse:collapse;color:inherit}
@media (prefers-color-scheme:dark){.acheck .ok .m{color:#3fb950}.acheck .no .m{color:#ff7b72}}
[data-jp-theme-light="true"] .acheck .ok .m{color:#1a7f37}[data-jp-theme-light="true"] .acheck .no .m{color:#cf222e}
[data-jp-theme-light="false"] .acheck .ok .m{color:#3fb950}[data-jp-theme-light="false"] .acheck .no .m{color:#ff7b72}
</style>"""
_MARKS = {"passed": ("ok", "✓ passed"), "FAILED": ("no", "✗ failed"), "not tried": ("", "– not tried")}


def as_page(said: Any, *, more: bool) -> str:
    """Return an `Account` as HTML: the verdict and one finding, with everything else in a fold (open: more)."""
    parts = [f'<p class="w">{escape(said.warning)}</p>'] if said.warning else []
    parts.append(f'<p class="t">{escape(said.title)}</p>')
    if said.finding:
        parts.append(f"<ul>{_item(said.finding)}</ul>")
    if said.short_box:
        parts.append(f'<div class="b">{_prose(said.short_box)}</div>')
    if said.line_message:
        parts.append(f'<pre class="b">{escape(said.line_message)}</pre>')
    if said.repair:
        parts.append(f'<div class="b">{"".join(f"<div>{_prose(line)}</div>" for line in said.repair)}</div>')
    if said.offer:
        parts.append(f"<p>{_prose(said.offer)}</p>")
    if said.lines:
        fold = [f"<ul>{''.join(map(_item, said.lines))}</ul>"]
        if said.box:
            sentences = "".join(f"<div>{_prose(sentence)}</div>" for sentence in said.box)
            fold.insert(0, f'<div class="b"><b>{escape(said.box_title)}</b>{sentences}</div>')
        fold += [f"<p>{_prose(one)}</p>" for one in said.asides if one]
        summary = "<summary>All examples, and what to do</summary>"
        parts.append(f"<details{' open' if more else ''}>{summary}{''.join(fold)}</details>")
    return f'{_STYLE}<div class="acheck">{"".join(parts)}</div>'


def page_of_summary(rows: list[tuple[str, str, str]], below: list[str]) -> str:
    """The whole notebook's exercises as a table."""
    lines = "".join(f"<tr><th scope='row'><code>{escape(name)}</code></th><td>{escape(_mark(said) + said)}</td>"
                    f"<td>{escape(score)}</td></tr>" for name, said, score in rows)  # fmt: skip
    text = "".join(f"<p>{escape(one)}</p>" for one in below)
    return f'{_STYLE}<div class="acheck"><table class="s">{lines}</table>{text}</div>'


def page_of_lines(title: str, lines: list[str]) -> str:
    """A few sentences below a title; without one if it is empty."""
    parts = [f'<p class="t">{_prose(title)}</p>'] if title else []
    return f'{_STYLE}<div class="acheck">{"".join([*parts, *(f"<p>{_prose(line)}</p>" for line in lines)])}</div>'


def _mark(said: str) -> str:
    if said == "passes":
        return "✓ "
    return "– " if said.startswith("not ") else "✗ "


def _item(line: Any) -> str:
    kind, mark = _MARKS[line.mark]
    inside = f'<span class="m">{mark}</span> {_prose(line.statement)}'
    if line.problem:
        below = _prose(line.problem)
        below += f"<div>In the call <code>{escape(line.call)}</code></div>" if line.call else ""
        below += f"<div>To play with it: <code>{escape(line.to_play_with)}</code></div>" if line.to_play_with else ""
        below += "".join(f"<div><code>{escape(frame)}</code></div>" for frame in line.frames)
        inside += f'<div class="p">{below}</div>'
    if line.beside:
        inside += _two(line.beside)
    if line.printed:
        inside += f"<div>Your code printed:</div><pre>{escape(line.printed)}</pre>"
    return f'<li class="{kind}">{inside}</li>'


def _prose(text: str) -> str:
    """Plain text, with what stands between backticks as code."""
    return re.sub(r"`([^`\n]+)`", r"<code>\1</code>", escape(text))


def _two(beside: Any) -> str:
    where = f" {escape(beside.where)}" if beside.where else ""
    own = [[_cell(*one) for one in zip(*row, strict=True)] for row in zip(beside.own, beside.wrong, strict=True)]
    right = [[_cell(number) for number in row] for row in beside.right]
    return f'<div class="two">{_table(f"yours{where}", own)}{_table(f"expected{where}", right)}</div>'


def _table(title: str, cells: list[list[str]]) -> str:
    rows = "".join(f"<tr>{''.join(row)}</tr>" for row in cells)
    return f"<div>{title}<table>{rows}</table></div>"


def _cell(number: str, wrong: bool = False) -> str:
    return f'<td class="x">{escape(number)} ≠</td>' if wrong else f"<td>{escape(number)}</td>"
