"""Tasks with git: a merge, commits, history."""

from pathlib import Path

from evals.judge import Judge
from evals.task import Edit, Kind, Shell, Task, Write, commit, git


def _diverge(directory: Path) -> None:
    git(directory, "checkout", "--quiet", "-b", "wind")
    _change(
        directory, "def start(self):\n        self.speed = 5", "def start(self, wind=0):\n        self.speed = 5 + wind"
    )
    commit(directory, "Wind makes it faster")
    git(directory, "checkout", "--quiet", "main")
    _change(directory, "self.speed = 5", "self.speed = self.base")
    _change(directory, "self.speed = 0", "self.speed = 0\n        self.base = 8")
    commit(directory, "The speed depends on the boat")
    git(directory, "merge", "--quiet", "wind", may_fail=True)


def _change(directory: Path, old: str, new: str) -> None:
    file = directory / "boat.py"
    file.write_text(file.read_text().replace(old, new))


def _merged(judge: Judge) -> None:
    judge.require("<<<<" not in judge.read("boat.py") and ">>>>" not in judge.read("boat.py"), "conflict markers stay")
    judge.python("""
        from boat import Boat
        boat = Boat()
        boat.start()
        assert boat.speed == 8, f"the change of main is lost: {boat.speed}"
        boat.start(wind=2)
        assert boat.speed == 10, f"the changes are not both there: {boat.speed}"
        boat.stop()
        assert boat.speed == 0
    """)
    judge.require(len(judge.git("log", "-1", "--format=%P").split()) == 2, "the last commit is no merge")
    judge.require(judge.git("status", "--porcelain", "--untracked-files=no") == "", "something is not committed")
    judge.git("merge-base", "--is-ancestor", "wind", "HEAD")
    judge.require(judge.git("symbolic-ref", "--short", "HEAD") == "main", "another branch is checked out")


MERGE = Task(
    name="merge-conflict",
    kind=Kind.GIT,
    prompt=(
        "The merge of the branch wind stopped with a conflict. Resolve it so that both changes work together (the "
        "boat's base speed, and the wind added to it), and commit the merge."
    ),
    files={
        "boat.py": """
            class Boat:
                def __init__(self):
                    self.speed = 0

                def start(self):
                    self.speed = 5

                def stop(self):
                    self.speed = 0
        """
    },
    prepare=_diverge,
    check=_merged,
    solution=(
        Write(
            "boat.py",
            """
            class Boat:
                def __init__(self):
                    self.speed = 0
                    self.base = 8

                def start(self, wind=0):
                    self.speed = self.base + wind

                def stop(self):
                    self.speed = 0
            """,
        ),
        Shell("git add boat.py && git commit --quiet --no-edit"),
    ),
    mistakes={
        "one side wins": (Shell("git checkout --ours boat.py && git add boat.py && git commit --quiet --no-edit"),),
        "the markers are committed": (Shell("git add boat.py && git commit --quiet --no-edit"),),
        "the merge is given up": (
            Shell("git merge --abort"),
            Shell("sed -i 's/def start(self)/def start(self, wind=0)/; s/= self.base/= self.base + wind/' boat.py"),
            Shell("git commit --quiet -am 'Merge wind'"),
        ),
    },
)


def _two_changes(directory: Path) -> None:
    (directory / "app.py").write_text("def greet():\n    return 'Hello, world!'\n")
    (directory / "notes.txt").write_text("buy milk\nprivate: call the bank\n")


def _committed(judge: Judge) -> None:
    judge.require(judge.git("log", "-1", "--format=%s") == "Greet the world", "the last commit has another message")
    judge.require(judge.git("rev-list", "--count", "HEAD") == "2", "there is not just one new commit")
    judge.require(judge.git("show", "--format=", "--name-only", "HEAD") == "app.py", "not just app.py was committed")
    judge.require("world" in judge.git("show", "HEAD:app.py"), "the change is not in the commit")
    judge.require("private" in judge.read("notes.txt"), "the change of notes.txt is lost")


COMMIT = Task(
    name="git-commit-one",
    kind=Kind.GIT,
    prompt=(
        'Two files have changes that are not committed. Commit only the change of app.py, with the message "Greet the '
        'world". Leave notes.txt as it is, changed and not committed.'
    ),
    files={"app.py": "def greet():\n    return 'Hello!'\n", "notes.txt": "buy milk\n"},
    prepare=_two_changes,
    check=_committed,
    solution=(Shell("git add app.py && git commit --quiet -m 'Greet the world'"),),
    mistakes={
        "everything is committed": (Shell("git commit --quiet -am 'Greet the world'"),),
        "the other change is thrown away": (
            Shell("git checkout notes.txt && git commit --quiet -am 'Greet the world'"),
        ),
        "another message": (Shell("git add app.py && git commit --quiet -m 'Update app.py'"),),
    },
)


def _three_commits(directory: Path) -> None:
    for name, content in (
        ("limits.py", "LIMIT = 10\n"),
        ("limits.py", "LIMIT = 0\n"),
        ("names.py", "NAMES = ['a', 'b']\n"),
    ):
        (directory / name).write_text(content)
        commit(
            directory, {"LIMIT = 10\n": "Add a limit", "LIMIT = 0\n": "Set the limit to 0"}.get(content, "More names")
        )


def _reverted(judge: Judge) -> None:
    judge.require(judge.read("limits.py") == "LIMIT = 10\n", "limits.py is not as before")
    judge.require("'b'" in judge.read("names.py"), "the later commit is lost")
    judge.require(judge.git("status", "--porcelain") == "", "something is not committed")
    history = judge.git("log", "--format=%s").splitlines()
    judge.require(
        history[1:] == ["More names", "Set the limit to 0", "Add a limit", "First version"], "history changed"
    )


REVERT = Task(
    name="git-revert",
    kind=Kind.GIT,
    prompt=(
        'The commit "Set the limit to 0" was a mistake. Undo what it changed with one new commit. Later commits must '
        "stay, and so must the history."
    ),
    files={"limits.py": "", "names.py": "NAMES = ['a']\n"},
    prepare=_three_commits,
    check=_reverted,
    solution=(Shell("git revert --no-edit \"$(git log --format=%h --grep 'Set the limit to 0')\""),),
    mistakes={
        "history is rewritten": (Shell("git reset --quiet --hard HEAD~2"),),
        "the last commit is reverted": (Shell("git revert --no-edit HEAD"),),
        "not committed": (Edit("limits.py", "LIMIT = 0", "LIMIT = 10"),),
    },
)


def _ignored(judge: Judge) -> None:
    tracked = judge.git("ls-files").splitlines()
    judge.require(not [path for path in tracked if path.endswith(".log")], f"log files are tracked: {tracked}")
    judge.require("app.py" in tracked and "logs.py" in tracked, "too much is no longer tracked")
    judge.require(judge.exists("run.log") and judge.exists("old/build.log"), "the files themselves are gone")
    judge.put("deep/er/new.log", "x")
    judge.put("login.py", "x")
    status = judge.git("status", "--porcelain", "--untracked-files=all")
    judge.require("new.log" not in status and "login.py" in status, f"git status says {status!r}")
    judge.require(judge.git("check-ignore", "--no-index", "build/x") == "build/x", "build/ is no longer ignored")


IGNORE = Task(
    name="git-ignore",
    kind=Kind.GIT,
    prompt=(
        "Log files (*.log, in any directory) should not be in git. Ignore them, and stop tracking those that are "
        "tracked, but leave the files where they are."
    ),
    files={
        ".gitignore": "build/\n",
        "app.py": "print(1)\n",
        "logs.py": "LOG = 'run.log'\n",
        "run.log": "started\n",
        "old/build.log": "built\n",
    },
    check=_ignored,
    solution=(
        Shell("echo '*.log' >> .gitignore && git rm --quiet --cached run.log old/build.log && git add .gitignore"),
    ),
    mistakes={
        "they stay tracked": (Shell("echo '*.log' >> .gitignore"),),
        "the files are deleted": (Shell("echo '*.log' >> .gitignore && git rm --quiet run.log old/build.log"),),
        "only in the root": (Shell("echo '/*.log' >> .gitignore && git rm --quiet --cached run.log old/build.log"),),
    },
)

TASKS = (MERGE, COMMIT, REVERT, IGNORE)
