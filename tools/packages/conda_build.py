# SPDX-License-Identifier: Apache-2.0
"""Render a conda recipe, and build it without any channel: with the compiler, CMake and Python of the system.

python conda_build.py RECIPE OUTPUT
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import yaml  # type: ignore[import-untyped]
from rattler_build import EnvironmentIsolation, Stage0Recipe, VariantConfig

MODULES = "lib/python/site-packages"


def main(recipe: Path, output: Path) -> None:
    """Render, then build."""
    beside = yaml.safe_load(recipe.with_name("variants.yaml").read_text(encoding="utf-8"))
    of_channel = {"python": ["3.13.* *_cp313"], "c_compiler": ["gcc"], "cxx_compiler": ["gxx"]}
    variants = VariantConfig({**of_channel, **beside})
    (rendered,) = Stage0Recipe.from_file(recipe).render(variants)
    print(json.dumps(rendered.recipe.to_dict(), indent=1, default=str))
    described = yaml.safe_load(recipe.read_text(encoding="utf-8"))
    del described["requirements"], described["tests"], described["build"]["python"]
    described["build"]["script"] = [line.replace("$SP_DIR", MODULES) for line in described["build"]["script"]]
    channel = output / "no-channel"
    for platform in ("noarch", "linux-64"):
        (channel / platform).mkdir(parents=True)
        (channel / platform / "repodata.json").write_text('{"packages": {}, "packages.conda": {}}')
    (alone,) = Stage0Recipe.from_dict(described).render(VariantConfig())
    result = alone.run_build(
        output_dir=output,
        channels=[channel.resolve().as_uri()],
        no_include_recipe=True,
        env_isolation=EnvironmentIsolation.NONE,
    )
    print(*result.packages)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
