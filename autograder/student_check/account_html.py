"""The check's account as HTML, readable in light and dark themes and in narrow windows."""

import re
from html import escape
from typing import Any

# A doubled class has precedence over JupyterLab's own rules for outputs.
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


def account_page(account: Any, *, more: bool) -> str:
    """Return an `Account` as HTML: the verdict and one finding. All else is in a fold, which is open if `more`."""
    parts = [f'<p class="w">{escape(account.warning)}</p>'] if account.warning else []
    parts.append(f'<p class="t">{escape(account.title)}</p>')
    example = [f"<ul>{_item(account.finding)}</ul>"] if account.finding else []
    cause = [f'<div class="b">{_prose(account.short_box)}</div>'] if account.short_box else []
    if account.line_message:
        cause.append(f'<pre class="b">{escape(account.line_message)}</pre>')
    parts += [*example, *cause] if account.is_error else [*cause, *example]
    if account.repair:
        parts.append(f'<div class="b">{"".join(f"<div>{_prose(line)}</div>" for line in account.repair)}</div>')
    if account.offer:
        parts.append(f"<p>{_prose(account.offer)}</p>")
    if account.lines:
        fold = [f"<ul>{''.join(map(_item, account.lines))}</ul>"]
        if account.box:
            sentences = "".join(f"<div>{_prose(sentence)}</div>" for sentence in account.box)
            fold.insert(0, f'<div class="b"><b>{escape(account.box_title)}</b>{sentences}</div>')
        fold += [f"<p>{_prose(one)}</p>" for one in account.asides if one]
        summary = "<summary>All examples, and what to do</summary>"
        parts.append(f"<details{' open' if more else ''}>{summary}{''.join(fold)}</details>")
    return f'{_STYLE}<div class="acheck">{"".join(parts)}</div>'


def summary_page(rows: list[tuple[str, str, str]], below: list[str]) -> str:
    """Return the exercises of a whole notebook as a table. rows: name, verdict and score."""
    lines = "".join(f"<tr><th scope='row'><code>{escape(name)}</code></th><td>{escape(_mark(said) + said)}</td>"
                    f"<td>{escape(score)}</td></tr>" for name, said, score in rows)  # fmt: skip
    text = "".join(f"<p>{escape(one)}</p>" for one in below)
    return f'{_STYLE}<div class="acheck"><table class="s">{lines}</table>{text}</div>'


def lines_page(title: str, lines: list[str]) -> str:
    """Return sentences as HTML, below a title unless it is empty."""
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
    """Return plain text as HTML, with text in backticks as code."""
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
