"""Entry point of `python -m pipelines`."""


def main() -> None:
    """Runs the command line."""
    from pipelines.cli import app

    app(prog_name="python -m pipelines")


if __name__ == "__main__":
    main()
