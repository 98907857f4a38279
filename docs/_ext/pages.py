"""Build the site: the pages that README.md leads to, the units' notebooks, and reference pages made from the code.

`python docs/_ext/pages.py [FOLDER [OPTION ...]]` writes the pages as Markdown into a temporary folder, under the paths
that they have in the repository, and runs Sphinx there. FOLDER is where the site goes: site/ by default. The options
are those of sphinx-build.
"""

import os
import re
import sys
import tempfile
from pathlib import Path

import reference
from nbconvert.exporters import MarkdownExporter
from sphinx.cmd.build import build_main

REPOSITORY = Path(__file__).resolve().parents[2]
UNITS = re.findall(r"\]\((release/.*)\.ipynb\)", (REPOSITORY / "README.md").read_text())
INSTRUCTORS = ["teaching", "automation", "cluster", "cuda", "troubleshooting"]
REFERENCE = {f"reference/{name}": page for name, page in reference.PAGES.items()}
NAVIGATION = {
    "index": {
        "Tutorials": [f"/{unit}" for unit in UNITS],
        "How-to guides": ["/docs/student", "/docs/instructor", "For authors </CONTRIBUTING>"],
        "Reference": [*(f"/{name}" for name in REFERENCE), "/docs/matrix", "/docs/source_documents", "/CHANGELOG"],
        "Explanation": ["/docs/design", "/docs/finding_mistakes", "/docs/security", "/docs/performance"],
    },
    "docs/instructor": {"": [f"/docs/{name}" for name in INSTRUCTORS]},
    "docs/automation": {"": ["/deploy/*"]},
    "docs/design": {"": ["/docs/design/*"]},
    "docs/performance": {"": ["/docs/performance_history"]},
    "docs/security": {"": ["/SECURITY"]},
}
"""The pages below a page in the navigation, group by group."""
LINK = re.compile(r"\]\((?!\w+:)([^)#\s]+)")


def in_site(path: str) -> str:
    """Return the path in the site of a file or folder of the repository."""
    if path == "README.md":
        return "index.md"
    if (REPOSITORY / path).is_dir():
        return f"{path}.md"
    path = re.sub(r"^(release/.*)\.ipynb$", r"\1.md", path)
    return re.sub(r"^docs/(\w+)\.schema\.json$", r"reference/\1_json.md", path)


def collect(path: str, tree: Path) -> None:
    """Write a page and all pages and files that it links to into the tree, which has none of them yet."""
    target = tree / in_site(path)
    if target.exists():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    source = REPOSITORY / path
    if source.is_dir():
        target.write_text(folder_page(source))
    elif source.suffix != ".md":
        target.symlink_to(source)
    else:
        text, folder = source.read_text(), source.parent
        links = {link: os.path.relpath(folder / link, REPOSITORY) for link in LINK.findall(text)}
        target.write_text(
            LINK.sub(lambda link: f"]({os.path.relpath(tree / in_site(links[link[1]]), target.parent)}", text)
        )
        for linked in links.values():
            if (REPOSITORY / linked).exists():  # otherwise Sphinx reports the link
                collect(linked, tree)


def folder_page(folder: Path) -> str:
    """Return a page with the files of a folder."""
    files = sorted(file for file in folder.iterdir() if file.is_file())
    title = folder.relative_to(REPOSITORY)
    return f"# {title}\n" + "".join(f"\n## {file.name}\n\n````text\n{file.read_text()}````\n" for file in files)


def notebook_page(unit: str, folder: Path) -> str:
    """Return the page of a unit's released notebook, and write its pictures into the folder."""
    text, resources = MarkdownExporter().from_filename(str(REPOSITORY / f"{unit}.ipynb"))
    for name, content in resources["outputs"].items():
        (folder / name).write_bytes(content)
    title, _, rest = text.lstrip().partition("\n")
    hint = f"This page is for reading. To write and check answers, open the notebook in `release/{folder.name}/`."
    return f"{title}\n\n{hint}\n{rest}"


def navigation(page: str) -> str:
    """Return the directives that put other pages below a page in the navigation."""
    text = ""
    for caption, below in NAVIGATION[page].items():
        options = [":hidden:", ":glob:", *([f":caption: {caption}"] if caption else [])]
        text += "\n".join(["", "```{toctree}", *options, "", *below, "```", ""])
    return text


def write_pages(tree: Path) -> None:
    """Write all pages into an empty folder."""
    for unit in UNITS:
        (tree / unit).parent.mkdir(parents=True)
        (tree / f"{unit}.md").write_text(notebook_page(unit, (tree / unit).parent))
    (tree / "reference").mkdir()
    for name, text_of in REFERENCE.items():
        (tree / f"{name}.md").write_text(text_of())
    collect("README.md", tree)
    for page in NAVIGATION:
        with (tree / f"{page}.md").open("a") as file:
            file.write(navigation(page))


def main(site: str = str(REPOSITORY / "site"), *others: str) -> int:
    """Build the site; return Sphinx's exit status, which is not 0 after a warning."""
    with tempfile.TemporaryDirectory() as folder:
        tree, doctrees = Path(folder) / "pages", Path(folder) / "doctrees"
        tree.mkdir()
        write_pages(tree)
        options = ["--fail-on-warning", "--quiet", "--jobs=auto", f"--doctree-dir={doctrees}", *others]
        status = build_main([*options, f"--conf-dir={REPOSITORY / 'docs'}", str(tree), site])
    if status == 0:
        print(f"Open {Path(site) / 'index.html'}")
    return status


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
