import json

import pytest
from matplotlib.figure import Figure


@pytest.fixture
def write(tmp_path):
    """A function that writes text, lines, or a dictionary as JSON, and returns the file's path."""

    def write(name, content):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, dict):
            content = json.dumps(content)
        elif not isinstance(content, str):
            content = "".join(f"{line}\n" for line in content)
        path.write_text(content, encoding="utf-8")
        return str(path)

    return write


@pytest.fixture
def drawn(monkeypatch, tmp_path):
    """Call a function that draws what it is given to a file; return the axes."""

    def drawn(draw, content):
        figures = []
        monkeypatch.setattr(Figure, "savefig", lambda figure, *_, **__: figures.append(figure))
        draw(content, str(tmp_path / "plot.png"))
        return figures[0].axes[0]

    return drawn
