"""The command line. Exit codes: 0 done, 1 the design or input has errors, 2 wrong usage.

Qt is imported only to show the window or to render it; every other command runs without. What takes long to
import is imported inside `main`, so that Ctrl-C ends it there without a traceback.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from app.cli_arguments import assignment, picture_file, picture_scale, picture_size
from app.cli_output import is_output_error, prepare_streams, report_output_error

if TYPE_CHECKING:
    from model_core.diagnostics import Diagnostic
    from model_core.results import Evaluation
    from model_core.spec.design import Design

DEFAULT_DESIGN: Final = "palm-540b-decode-low-latency"
WINDOW_PICTURE: Final = "meshwright-window.png"
THEMES: Final = ("light", "dark", "print")
LANGUAGES: Final = ("en", "zh_CN")
_DESIGN_HELP: Final = "a design file or the name of a preset design"
_OPENING: Final = """\
meshwright [DESIGN] opens the window. DESIGN is a file or the name of a preset design; without it the
window opens on the default design. --set path=value changes a field: quantities take units
(--set cluster.chip.hbm_bandwidth="1200 GB/s"), model, cluster, cluster.chip and workload take the
name of a preset, null empties a field.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    prepare_streams()
    try:
        code = _code(arguments)
        sys.stdout.flush()
    except OSError as error:
        return report_output_error(error)
    except KeyboardInterrupt:
        return 130
    return code


def _code(arguments: list[str]) -> int:
    try:
        return _run(arguments)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0
    except ImportError as error:
        print(f"error: {error}\n    ./meshwright.sh installs what is missing.", file=sys.stderr)
        return 1
    except Exception as error:
        if isinstance(error, OSError) and is_output_error(error):
            raise
        return _bug(error, arguments)


def _bug(error: Exception, arguments: list[str]) -> int:
    from model_core.diagnostics import Diagnostic

    values = {
        "stage": arguments[0] if arguments else "window",
        "reason": f"{type(error).__name__}: {error}",
    }
    return _fail((Diagnostic("internal", "", values),), "", "--json" in arguments)


def _run(arguments: list[str]) -> int:
    is_command = bool(arguments) and arguments[0] in (*_COMMANDS, "-h", "--help", "--version")
    options = _parser().parse_args(arguments) if is_command else _window_options(arguments)
    run: Callable[[argparse.Namespace], int] = options.run
    return run(options)


def _window_options(arguments: list[str]) -> argparse.Namespace:
    parser = _window_parser()
    options, rest = parser.parse_known_args(arguments)
    if rest:
        from app.cli_design import is_design

        # More words after one that is no design were meant as a command with its arguments.
        if not is_design(options.design):
            from presets import nearest

            near = ", ".join(nearest(options.design, tuple(_COMMANDS)) or _COMMANDS)
            parser.error(f"there is no command {options.design}\n    Nearest names: {near}.")
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    return options


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="meshwright",
        description="Design, cost and defend deployments of large Transformers.",
        epilog=_OPENING,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=_version())
    commands = parser.add_subparsers(required=True, metavar="COMMAND", title="commands")
    for name, (run, text) in _COMMANDS.items():
        command = commands.add_parser(name, help=text, description=f"{text[:1].upper()}{text[1:]}.")
        command.set_defaults(run=run)
        _add_options(name, command)
    return parser


def _add_options(name: str, command: argparse.ArgumentParser) -> None:
    if name in _OPTIONS:
        module, function = _OPTIONS[name]
        getattr(import_module(module), function)(command)
    elif name == "render":
        _add_render_options(command)
    elif name in ("sweep", "recommend", "pair"):
        from app.cli_search import add_search_options

        command.add_argument("design", metavar="DESIGN", help=_DESIGN_HELP)
        add_search_options(name, command)
        _add_set_option(command)
        command.set_defaults(search=name)
    else:
        command.add_argument("--json", action="store_true", help="print one JSON document")
        if name != "presets":
            command.add_argument("design", metavar="DESIGN", help=_DESIGN_HELP)
            _add_set_option(command)


def _window_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="meshwright",
        usage="meshwright [DESIGN] [--set PATH=VALUE]\n       meshwright COMMAND ...",
        description="Open the window on a design.",
        epilog=f"Commands: {', '.join(_COMMANDS)}. meshwright --help describes them.",
    )
    parser.add_argument("design", metavar="DESIGN", nargs="?", default=DEFAULT_DESIGN, help=_DESIGN_HELP)
    _add_set_option(parser)
    parser.set_defaults(run=_window)
    return parser


def _add_set_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--set",
        metavar="PATH=VALUE",
        action="append",
        default=[],
        type=assignment,
        dest="assignments",
        help="change a field, for instance workload.batch=64; may be repeated",
    )


def _add_render_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("design", metavar="DESIGN", nargs="?", default=DEFAULT_DESIGN, help=_DESIGN_HELP)
    _add_set_option(parser)
    parser.add_argument("--view", metavar="VIEW", required=True, help="what to draw; list prints the views")
    parser.add_argument("-o", "--output", metavar="FILE", type=picture_file, help="a .png, .svg or .pdf file")
    parser.add_argument("--theme", choices=THEMES, default="light")
    parser.add_argument(
        "--size", metavar="WxH", type=picture_size, default=(1600, 900), help="default: 1600x900"
    )
    parser.add_argument(
        "--scale", type=picture_scale, default=1.0, help="device pixels per pixel of the size"
    )
    parser.add_argument("--lang", choices=LANGUAGES, default="en")


def _presets(options: argparse.Namespace) -> int:
    import presets

    if options.json:
        _print_json({kind: list(presets.names(kind)) for kind in presets.KINDS})
        return 0
    for kind in presets.KINDS:
        width = max(map(len, presets.names(kind)))
        print(kind)
        for name in presets.names(kind):
            print(f"  {name:{width}}  {presets.title(kind, name)}")
    return 0


def _check(options: argparse.Namespace) -> int:
    evaluation = _evaluation(options)
    if evaluation is None:
        return 1
    if options.json:
        found = [diagnostic.to_json() for diagnostic in evaluation.diagnostics]
        _print_json({"design": evaluation.design.name, "diagnostics": found})
    else:
        _print_diagnostics(evaluation.diagnostics, sys.stdout)
        if not evaluation.diagnostics:
            print("no problems found")
    return 0 if evaluation.ok else 1


def _evaluate(options: argparse.Namespace) -> int:
    from app.cli_report import evaluation_lines
    from model_core.diagnostics import Severity

    evaluation = _evaluation(options)
    if evaluation is None:
        return 1
    if options.json:
        _print_json(evaluation.to_json())
        errors = tuple(d for d in evaluation.diagnostics if d.severity is Severity.ERROR)
        _print_diagnostics(errors, sys.stderr)
    else:
        print("\n".join(evaluation_lines(evaluation)))
    return 0 if evaluation.ok else 1


def _render(options: argparse.Namespace) -> int:
    from model_core.diagnostics import Severity

    if options.view != "list" and options.output is None:
        _parser().error("render: -o FILE is required")
    from app.figures.render import VIEWS, render_view

    if options.view == "list":
        print("\n".join(VIEWS))
        return 0
    if options.view not in VIEWS:
        _parser().error(f"render: there is no view {options.view!r}; choose from {', '.join(VIEWS)}")
    evaluation = _evaluation(options)
    if evaluation is None:
        return 1
    serious = (d for d in evaluation.diagnostics if d.severity is not Severity.INFO)
    _print_diagnostics(serious, sys.stderr)
    try:
        remark = render_view(
            evaluation.design,
            options.view,
            options.output,
            theme=options.theme,
            size=options.size,
            scale=options.scale,
            lang=options.lang,
        )
    except (OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    if remark:
        print(remark, file=sys.stderr)
    return 0 if evaluation.ok else 1


def _reproduce(options: argparse.Namespace) -> int:
    from app.cli_reproduce import reproduce_output

    text, found = reproduce_output(options)
    return _printed(text, found, options.json)


def _calibrate(options: argparse.Namespace) -> int:
    from app.cli_reproduce import calibrate_output

    text, found = calibrate_output(options)
    return _printed(text, found, options.json)


def _printed(text: str | None, found: tuple[Diagnostic, ...], as_json: bool) -> int:
    if text is None:
        return _fail(found, "", as_json)
    sys.stdout.write(text)
    return 0


def _search(options: argparse.Namespace) -> int:
    from app.cli_search import run_search
    from model_core.diagnostics import Severity

    design = _design(options)
    if design is None:
        return 1
    is_written, found = run_search(options.search, design, options)
    if not is_written:
        return _fail(found, design.name, options.json)
    _print_diagnostics(found, sys.stderr)
    return 1 if any(d.severity is Severity.ERROR for d in found) else 0


def _place(options: argparse.Namespace) -> int:
    from app.cli_place import place_output

    text, found = place_output(options)
    if text is None:
        return _fail(found, "", options.json)
    _print_diagnostics(found, sys.stderr)
    sys.stdout.write(text)
    return 0


def _schedule(options: argparse.Namespace) -> int:
    from app.cli_schedule import schedule_output

    text, found = schedule_output(options)
    if text is None:
        return _fail(found, "", options.format == "json")
    _print_diagnostics(found, sys.stderr)
    if options.output is None:
        sys.stdout.write(text)
        return 1 if found else 0
    try:
        options.output.write_text(text, encoding="utf-8")
    except OSError as error:
        from app.cli_design import unwritable

        return _fail((unwritable(options.output, error),), "", False)
    return 1 if found else 0


def _window(options: argparse.Namespace) -> int:
    from app.cli_design import design_file
    from app.display import has_display

    design = _design(options, _COMMANDS)
    if design is None:
        return 1
    if has_display():
        from app.main import run_window

        return run_window(design, None if options.assignments else design_file(options.design))
    print(f"There is no display; the window is drawn to {WINDOW_PICTURE} instead.", file=sys.stderr)
    from app.figures.render import render_view

    try:
        render_view(design, "window", Path(WINDOW_PICTURE))
    except (OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def _evaluation(options: argparse.Namespace) -> Evaluation | None:
    """Evaluate the design of the options; prints why where there is none."""
    from model_core import evaluate

    design = _design(options)
    return None if design is None else evaluate(design)


def _design(options: argparse.Namespace, commands: Iterable[str] = ()) -> Design | None:
    from app.cli_design import open_design

    design, found = open_design(options.design, options.assignments, commands)
    if design is None:
        _fail(found, options.design, getattr(options, "json", False))
    return design


def _fail(found: tuple[Diagnostic, ...], design: str, as_json: bool) -> int:
    _print_diagnostics(found, sys.stderr)
    if as_json:
        _print_json({"design": design, "diagnostics": [diagnostic.to_json() for diagnostic in found]})
    return 1


def _print_diagnostics(found: Iterable[Diagnostic], stream: Any) -> None:
    from app.cli_report import diagnostic_lines

    for line in diagnostic_lines(found):
        print(line, file=stream)


def _print_json(document: Any) -> None:
    print(json.dumps(document, indent=2, allow_nan=False))


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return f"meshwright {version('meshwright')}"
    except PackageNotFoundError:
        return "meshwright (not installed)"


_OPTIONS: Final[dict[str, tuple[str, str]]] = {
    "reproduce": ("app.cli_reproduce", "add_reproduce_options"),
    "calibrate": ("app.cli_reproduce", "add_calibrate_options"),
    "schedule": ("app.cli_schedule", "add_schedule_options"),
    "place": ("app.cli_place", "add_place_options"),
}
"""Commands whose options stand in a module of their own, and the function that adds them."""

_COMMANDS: Final[dict[str, tuple[Callable[[argparse.Namespace], int], str]]] = {
    "presets": (_presets, "list the preset models, chips, clusters, workloads and designs"),
    "check": (_check, "print what is wrong with a design"),
    "evaluate": (_evaluate, "print parameters, memory, time, collectives and cost of a design"),
    "render": (_render, "draw a view of a design to a file"),
    "reproduce": (_reproduce, "recompute published figures and print them beside ours"),
    "calibrate": (_calibrate, "fit efficiency factors to measured latencies"),
    "sweep": (_search, "evaluate all combinations of the values of some fields"),
    "recommend": (_search, "find the best design that meets some targets"),
    "pair": (_search, "size prefill and decode servers for a rate of requests"),
    "schedule": (_schedule, "order and time the operations of a pipeline schedule"),
    "place": (_place, "put experts and their replicas on GPUs, and judge that"),
}
