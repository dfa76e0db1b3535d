"""What generated shell texts are made of.

Owns lists of fragments alone. A *payload* is a text that runs or writes something if bash takes it for code; the
generator puts payloads where they should be plain text: into quotes, comments and heredocs.
"""

LOOKING = (
    *("ls", "ls -la", "ls src", "cat a", "cat", "head -3 a", "tail -n 2 b", "wc -l a", "pwd", "true", "false", ":"),
    *("echo", "echo a b", "echo -n x", "printf '%s\\n' a", "printf %d 1", "which ls", "type ls", "stat a", "file a"),
    *("git status", "git status -sb", "git log -3", "git log --oneline", "git diff", "git diff HEAD~1 -- src"),
    *("git show HEAD:a", "git branch -a", "git -P log", "git rev-parse HEAD", "git remote -v", "git stash list"),
    *("rg x", "rg -n x src", "rg -l -g '*.py' x", "grep -rn x src", "grep -c x a", "find . -name '*.py'"),
    *("find src", "find . -type f -print", "sort a", "sort -rn a", "uniq -c", "diff a b", "du -sh .", "date"),
    *("date +%s", "seq 3", "sed -n 1p a", "sed -n '1,3p' a", "cut -c1 a", "tr a b", "test -f a", "[ -f a ]"),
    *("[ a = b ]", "uname -a", "cd src", "set -e", "set -euo pipefail", "export CI=1", "exit", "exit 0", "break"),
    *("command -v ls", "nproc", "md5sum a", "basename a", "dirname a/b", "realpath a", "comm a b", "id"),
    *("python --version", "wait", "sleep 0"),
)
"""Commands that are allowed without a rule, alone."""

RUNNING = (
    *("touch p", "rm a", "git push", "curl x", "python -c x", "tee f", "cp a b", "mv a b", "./x", "node x", "make"),
    *("eval touch p", ". ./x", "source x", "awk 1 a", "sed -i s/a/b/ a", "xyz", "git commit -m x", "alias ls=rm"),
    *("trap 'touch p' EXIT", "read x", "mapfile x", "unset x", "shopt -s extglob", "enable -n cd", "hash -p x ls"),
)
"""Commands that are asked."""

DANGEROUS = (
    *("rm", "touch", "curl", "tee", "cp", "mv", "awk", "npm", "tar", "ln", "chmod", "sudo", "ssh", "npx", "wget"),
    *("kill", "vi", "less", "more", "gpg", "su", "dd", "perl", "ruby", "mkdir", "rmdir", "install", "xyz", "x"),
)
"""They never run unasked."""

STUBBED = (
    *("ls", "head", "tail", "wc", "which", "stat", "file", "git", "rg", "grep", "egrep", "fgrep", "sort", "uniq"),
    *("diff", "du", "date", "seq", "sed", "cut", "tr", "uname", "nproc", "md5sum", "sha256sum", "basename"),
    *("dirname", "tree", "realpath", "readlink", "comm", "cmp", "id", "whoami", "sleep", "fold", "nl", "paste"),
    *("rev", "tac", "python", "python3", "node", "make", "gcc"),
)
"""They do. In the throw-away directory they do nothing, as those above."""

REAL = ("bash", "sh", "dash", "env", "timeout", "nice", "nohup", "setsid", "stdbuf", "xargs", "find", "cat", "false")
"""These work as ever: what they start is seen."""

WRAPPERS = (
    *("env", "env -i", "env -u X", "env CI=1", "env -", "env --", "env A=b", "env -0", "timeout 1"),
    *("timeout -k 1 1", "timeout --signal=KILL 1", "timeout -s KILL 1", "nice", "nice -n 1", "nice -n1", "nohup"),
    *("setsid", "setsid -w", "stdbuf -oL", "command", "command -p", "command --", "builtin", "exec", "time"),
    *("time -p", "time --", "!", "! !", "xargs", "xargs -n 1", "xargs -I{} ", "xargs -I % ", "xargs -0"),
    *("echo a | xargs", "printf 'a\\nb' | xargs", "env -S 'ls", "exec -a x", "nice --adjustment=1", "timeout -v 1"),
    *("find . -maxdepth 0 -exec", "sudo", "coproc"),
)

SETTINGS = (
    *("CI=1", "LANG=C", "LC_ALL=C", "LC_ALL=de_DE.ISO-8859-1", "TZ=x", "TERM=x", "x=1", "x=", "y=a", "i=2"),
    *("COLUMNS=3", "BASH_ENV='$(touch p)'", "BASH_ENV=./x", "ENV=./x", "PATH=.", "LD_PRELOAD=./x.so", "HOME=."),
    *("IFS=a", "IFS=/", "PS4='$(touch p)'", "GIT_PAGER=./x", "PAGER=./x", "SHELLOPTS=xtrace", "BASHOPTS=extglob"),
    *("GIT_DIR=.", "CDPATH=.", "x+=1", "x[0]=1", "x=(a b)", "PROMPT_COMMAND=x", "POSIXLY_CORRECT=1", "GLOBIGNORE=a"),
    *("RIPGREP_CONFIG_PATH=./x",),
)

PAYLOADS = (
    *("$(touch p)", "`touch p`", ";touch p;", "; touch p #", "\ntouch p\n", "|touch p", "&touch p&", "&& touch p"),
    *(")touch p(", "); touch p; (", "}; touch p; {", "};touch p", "'; touch p; '", '"; touch p; "', "'$(touch p)'"),
    *("<(touch p)", ">(touch p)", ">p", "> p", ">>p", "2>p", ">&p", "&>p", "<>p", "${x:-$(touch p)}"),
    *("${x:-`touch p`}", "$((a[$(touch p)]))", "${a[$(touch p)]}", "${x@P}", "esac; touch p", "done; touch p"),
    *("fi; touch p", ";; touch p", "\\$(touch p)", "\\\\$(touch p)", "\\`touch p\\`", "\\\n$(touch p)"),
    *("${IFS}touch${IFS}p", "{touch,p}", "$'\\n'", "\\'; touch p #", '\\"; touch p #', "#\ntouch p", "#$(touch p)"),
    *("\\\ntouch p", "\r\ntouch p", "\u000btouch p", "$(<a)", "$[1]", "$[a[$(touch p)]]", '$"a"', '$"$(touch p)"'),
    *("!touch", "!!", "\\!", "^a^b", "~", "*", "[a]"),
)

LITERALS = (
    *("a", "b", "src", "x", "src/a.py", "*.py", "?", "[ab]", "x[a]b", "-", "--", "-n", "-e", "HEAD", "1", "{}", "{"),
    *("}", "{a,b}", "{1..3}", "a=b", "a:b", "~", "~/x", "+", "@", "%", "^", "!", "!x", "#", "a#b", "/dev/null"),
    *("..", ".", "]", "[", "[[", "]]", "in", "do", "done", "then", "fi", "esac", "case", "if", "for", "time", "é"),
    *("\xa0", "\u2003", "\u200b", "\ufeff", "\u3000", "a\xa0b", "\r", "a\r", "\u000b", "\f", "\u001b", "\x85"),
    *("\u2028", "ａ", "＄(touch p)"),
)

EXPANSIONS = (
    *("$x", "${x}", "$?", "$$", "$!", "$#", "$@", "$*", "$1", "${1}", "$-", "$_", "${#x}", "${x:-a}", "${x:=a}"),
    *("${x:+a}", "${x:?a}", "${x%a}", "${x##a}", "${x/a/b}", "${x//a/b}", "${x^^}", "${x,,}", "${x:1}", "${x:1:2}"),
    *("${!x}", "${!x*}", "${x[0]}", "${x[@]}", "${x[*]}", "${x@Q}", "${x@P}", "${x@E}", "$((1+1))", "$((x))"),
    *("$((1))", "$[1+1]", "$i", "$y", "${x:-$y}", "${x:-'a'}", '${x:-"a"}', "${x:-\\}}", "${x:-{a}}", "${x:-}}"),
    *("${x-`ls`}", "${x:-$(ls)}", "${", "$(", "$"),
)

DELIMITERS = (
    *("EOF", "E", "'EOF'", "'E'", '"EOF"', "\\EOF", "E\\OF", "E'O'F", 'EO"F"', "'E F'", '"E F"', "E\\ F", "''"),
    *('""', "-", "'-'", "$'EOF'", "$EOF", "`E`", "'E)'", "E)", "'E;'", "!", "'#'", "E.F", "E-F", "_", "1", "é"),
    *("'é'", "{E}", "~", "E*", "'$x'", "'`'", "\\'", "'\"'", '"\'"', '"\\E"', '"\\$E"', "'E\\'", "E\\\n", "EOF\r"),
    *("'EOF\r'", "E\xa0"),
)

ESCAPES = (
    *("\\n", "\\t", "\\\\", "\\'", '\\"', "\\x27", "\\x22", "\\x3b", "\\047", "\\u0027", "\\U00000027", "\\x0a"),
    *("\\x24", "\\c'", "\\ca", "\\e", "\\x", "\\u", "\\0", "\\x00", "\\xe9", "\\400", "\\q", "\\\n", "$(touch p)"),
    *("`touch p`", ";"),
)
"""For `$'…'`."""

REDIRECTIONS = (
    *("> /dev/null", ">/dev/null", "2>/dev/null", "2>&1", ">&2", "&>/dev/null", "&>>/dev/null", "< a", "<a", "0<a"),
    *("<&0", "3<a", "10<a", "<&-", ">&-", "2>&-", "1>&2", ">|/dev/null", ">>/dev/null", "<>/dev/null", "<<< a"),
    *("<<<a", "<<<$x", "<<< 'a'", '<<<"$(ls)"', "> p", ">p", ">>p", ">|p", "&>p", ">&p", "<>p", "2>p", "{fd}>p"),
    *("{fd}<a", "{x}>/dev/null", ">$x", "> $(ls)", ">*", "> 'p'", ">\\p", ">&$x", ">& /dev/null", ">&1-", "<&3-"),
    *(">/dev/stdout", "2>/dev/stderr", "</dev/stdin", ">/dev/tcp/127.0.0.1/1", "</dev/tcp/127.0.0.1/1"),
    *(">/dev/fd/3", "3>&1", "99999>p", "1>/dev/null"),
)

SEPARATORS = (
    *("; ", "; ", "; ", "\n", "\n", " && ", " && ", " || ", " | ", " | ", " |& ", " & ", "&", ";", "\n\n", " #c\n"),
    *("\n#c\n", " \\\n", "\\\n", "\\\n;", ";\\\n", " \\\r\n", "\r\n", "\t", ";;", ";&", "|\n", "&&\n", "|| #x\n"),
    *("\u000b", "\xa0;"),
)

FRAMES = (
    *("( {0} )", "({0})", "{{ {0}; }}", "{{ {0}\n}}", "if {0}; then {1}; fi", "if {0}; then {1}; else {2}; fi"),
    *("for i in a b; do {0}; done", "for i in a b\ndo {0}\ndone", "for i in a; do {0} $i; done"),
    *("for i; do {0}; done", "for ((i=0;i<2;i++)); do {0}; done", "for i in {{1..2}}; do {0}; done"),
    *('for f in src/*.py; do {0} "$f"; done', "while false; do {0}; done", "until {0}; do break; done"),
    *("while {0}; do break; done", "select i in a; do {0}; done", "case a in a) {0};; esac"),
    *("case a in (a|b) {0} ;; *) {1};; esac", "case a in a) {0} ;& b) {1};; esac"),
    *("case $x in\n'a') {0};;\n*) {1}\nesac", "case a in a) {0} esac", "case a in esac"),
    *("case in in in) {0};; esac", "f() {{ {0}; }}; f", "function f {{ {0}; }}; f", "f() ( {0} ); f"),
    *("ls() {{ {0}; }}; ls", "coproc {0}", "! {0}", "time {0}", "time -p {0}", "[[ -f a ]] && {0}"),
    *("[[ $x == a ]] && {0}", "[[ a =~ a ]] && {0}", "[[ -n $x ]]; {0}", "(( 1 )) && {0}", "((1+1)); {0}"),
    *("x=$({0})", "x=`{0}`", 'x="$({0})"', 'echo "$({0})"', "echo $({0})", "echo `{0}`", "cat <({0})"),
    *("cat <({0}) >({1})", "echo ${{x:-$({0})}}", "echo $(( $({0}) + 1 ))", "cat <<< $({0})", "{0} # {1}"),
    *("bash -c '{0}'", 'bash -c "{0}"', "sh -c '{0}'", "dash -c '{0}'", "bash -lc '{0}'", "bash -euc '{0}'"),
    *("bash -c ''", "bash -c '{0}' x a", "bash -c '# c'", "bash -c 'x=1'", "sh -c ''", "bash -o pipefail -c '{0}'"),
    *("bash -c \\\n'{0}'", "find . -maxdepth 0 -exec {0} \\;", "find . -maxdepth 0 -exec {0} {{}} +"),
    *("echo a | xargs {0}", "eval '{0}'", "export CI=1; {0}", "set -e; {0}", "cd src && {0}", "exec 3<a; {0}"),
    *("{0} &\nwait", "{0} \\\n  {1}", "{0}\\\n{1}", "$({0})", "`{0}`", '"{0}"', "'{0}'", "\\{0}", "echo a{{{0},b}}"),
    *("x=1 {0}", "[ -f a ] && {0}", "alias ls='{0}'\nls"),
)

CALM_FRAMES = (
    *("( {0} )", "{{ {0}; }}", "{{ {0}\n}}", "if {0}; then {1}; fi", "if {0}; then {1}; else {2}; fi", "! {0}"),
    *("time {0}", "for i in a b; do {0}; done", "for i in a b\ndo {0}\ndone", "for i in a; do {0} $i; done"),
    *("while false; do {0}; done", "until {0}; do break; done", "case a in a) {0};; esac"),
    *("case a in (a|b) {0} ;; *) {1};; esac", "x=$({0})", "x=`{0}`", "case a in a) {0} ;& b) {1};; esac"),
    *("case $x in\n'a') {0};;\n*) {1}\nesac", "[[ -f a ]] && {0}", "[[ a == b ]]; {0}", 'echo "$({0})"'),
    *("echo $({0})", "echo `{0}`", 'x="$({0})"', "echo ${{x:-$({0})}}", "cat <<< $({0})", "{0} &\nwait"),
    *("bash -c '{0}'", 'bash -c "{0}"', "sh -c '{0}'", "bash -euc '{0}'", "bash -c '{0}' x a", "{0} | {1}"),
    *("{0} \\\n  {1}", "timeout 1 {0}", "env CI=1 {0}", "nice {0}", "command {0}", "echo a | xargs {0}"),
    *("find . -maxdepth 0 -exec {0} {{}} +",),
)
"""What is allowed if all inside is."""

ODD_FRAMES = (
    *("echo $({0} # )\n)", "echo $({0} # ' \" `\n)", "echo `{0} # )`", "( {0} # )\n)"),
    *("echo $(case a in a) {0};; esac)", "echo $(case a in (a) {0};; esac)", "echo $( ({0}) )", "echo $(({0}))"),
    *("echo $(({0}) )", "echo $((1)) $({0})", 'echo "${{x:-{0}}}"', 'echo "a$({0})b"c', "echo $'a'\"$({0})\""),
    *("if\n{0}\nthen\n{1}\nfi", "while false;do {0};done", "{{ {0};}} | {{ {1};}}", "for i in a b;do {0};done;{1}"),
    *("time -p -- {0}", "! time {0}", "[[ a = b || -n $( {0} ) ]]", "[[ -f <({0}) ]]"),
    *("case a in a) ;; b) {0} ;; esac", "{0}&&{1}||{2}", 'echo "`{0}`"', 'echo "$({0} "a")" \'{1}\''),
    *("x=\"$({0})\" y='{1}' ; {2}", "echo a\\\n && {0}", '{0} <<< "$({1})"', "cat <<E | {0}\n$x\nE\n{1}"),
    *("echo $({0})$({1})",),
)
"""Where a substitution, a comment or a word ends is easily misread."""

LOOP_BODIES = (
    *("ls $i", 'ls "$i"', "ls ${i}", 'cat "$i.x"', "git log -- $i", "i=c", "i+=c", "for i in x y; do ls $i; done"),
    *(": ${i:=c}", "export i=c", "(i=c; ls $i)", "{ i=c; }", "true {i}<a", "exec {i}<a", "CI=$i ls", "i=c ls $i"),
    *("bash -c 'ls $i'", 'bash -c "ls $i"', "echo `ls $i`", "ls <<< $i", "cat <<E\n$i\nE\n", "ls $(echo $i)"),
    *("while false; do i=c; done", "case $i in a) ls $i;; esac", "[[ $i == a ]] && ls $i", "break", "continue"),
    *("ls ${i%a}", "ls ${i:-b}", "ls '$i'", "ls \\$i", 'ls "a$i"', "ls $i$i", "ls $ii", "ls ${i}i", "env i=c ls $i"),
    *("time ls $i", "x=$i; ls $x", "set -e", "IFS=a; ls $i", "ls $i &", "printf -v i c", "read i <<< c"),
    *("find . -name $i", "echo a | xargs -I% ls % $i", "ls $i > /dev/null", "cat < $i", "$i", "$i a", "sort $i"),
    *("rg -e $i src", "grep $i a", "head -n $i a", "test -f $i", "[ $i = a ]", "cd $i", "ls x$i*", "set -u; ls $i"),
)
LOOP_WORDS = (
    *("a", "b", "src", "1", "'a b'", "*", "src/*", "-n", "''", "x[a]b", "'x[a]b'", "{1..2}", "--", "$x", "'$x'"),
    *("a\\ b", "'*'", '"a b"', "'-o'", "--pre=./x", "'a;b'", "$'a\\tb'", "..", "~", "a=b", "-exec", "'$(touch p)'"),
    *("touch", "'touch p'", "é"),
)
"""The reader follows the variable of a loop over known words."""

SCRIPTS = (
    "",
    "",
    "# c",
    "x=1",
    "[[ -n x ]]",
    "> /dev/null",
    "export CI=1",
    ":",
    "ls",
    "true; ls",
    "x=1; y=2",
    " ",
    "\n",
)
"""For shells behind settings."""

TOKENS = (
    *("'", '"', "`", "\\", "$", "(", ")", "{", "}", "[", "]", "<", ">", "|", "&", ";", "\n", " ", "\t", "#", "!"),
    *("*", "?", "~", "=", "-", "\\\n", "$(", "${", "$((", "))", "<(", ">(", "<<", "<<-", "<<<", "&&", "||", ";;"),
    *(";&", "|&", ">&", "&>", "$'", '$"', "EOF", "\nEOF\n", "EOF)", "E", "\nE\n", "in", "do", "done", "esac", "fi"),
    *("\r", "\xa0", "\u000b", "touch p", ";touch p;", "$(touch p)", "--", "-e", "-c", "bash -c ", "''", '""', "\\'"),
    *('\\"', "((", "[[", "]]", "2", "1"),
)
"""For mutations."""
