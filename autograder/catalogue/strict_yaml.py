"""YAML as authors write it, in which no key stands twice: of two entries of one name, one would be lost."""

from collections.abc import Hashable
from pathlib import Path
from typing import Any

import yaml


class NotYaml(ValueError):
    """The file cannot be read; `str()` says why, without the file's name."""


def read_yaml(file: Path) -> Any:
    """What the file says; raises NotYaml."""
    try:
        return yaml.load(file.read_text(), Loader=_Loader)
    except (yaml.YAMLError, UnicodeDecodeError) as reason:
        raise NotYaml(str(reason)) from None


class _Loader(yaml.CSafeLoader):
    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        keys = [key.value for key, _ in node.value]
        if twice := {str(key) for key in keys if keys.count(key) > 1}:
            raise NotYaml(f"`{min(twice)}` is there twice")
        return super().construct_mapping(node, deep)
