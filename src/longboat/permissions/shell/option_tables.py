"""The harmless options of the commands that only read, with the number of values that each takes.

Owns these tables. An option is listed only if it cannot write, run anything, follow links out of the workspace, or read
a file that no word names; for every other option a person is asked. `tests/permissions/test_option_tables.py`
compares the tables with the help of the installed programs.
"""

from longboat.permissions.shell.options import Options, declare

_CHECKSUM = declare("btz", longs="binary tag text zero help version")

COREUTILS: dict[str, Options] = {
    "basename": declare("az", "s", longs="multiple suffix= zero help version", texts="s suffix"),
    "cat": declare(
        "AbeEnstTuv",
        longs="show-all number-nonblank show-ends number squeeze-blank show-tabs show-nonprinting help version",
    ),
    "cmp": declare("blsv", "in", longs="print-bytes ignore-initial= verbose bytes= quiet silent help version"),
    "comm": declare(
        "123z",
        longs="check-order nocheck-order output-delimiter= total zero-terminated help version",
        texts="output-delimiter",
    ),
    "cut": declare(
        "nsz",
        "bcdf",
        longs="""bytes= characters= delimiter= fields= complement only-delimited output-delimiter= zero-terminated help
        version""",
        texts="b c d f bytes characters delimiter fields output-delimiter",
    ),
    "dirname": declare("z", longs="zero help version"),
    "fold": declare("bs", "w", longs="bytes spaces width= help version", numbers=True),
    "head": declare("qvz", "cn", longs="bytes= lines= quiet silent verbose zero-terminated help version", numbers=True),
    "nl": declare(
        "p",
        "bdfhilnsvw",
        longs="""body-numbering= section-delimiter= footer-numbering= header-numbering= line-increment=
        join-blank-lines= number-format= no-renumber number-separator= starting-line-number= number-width= help
        version""",
    ),
    "paste": declare("sz", "d", longs="delimiters= serial zero-terminated help version", texts="d delimiters"),
    "readlink": declare(
        "femnqsvz",
        longs="""canonicalize canonicalize-existing canonicalize-missing no-newline quiet silent verbose zero help
        version""",
    ),
    "realpath": declare(
        "emLPqsz",
        longs="""canonicalize-existing canonicalize-missing logical physical quiet relative-to= relative-base= strip
        no-symlinks zero help version""",
        files="relative-to relative-base",
    ),
    "rev": declare("hV", longs="help version"),
    "stat": declare(
        "Lft", "c", longs="dereference file-system cached= format= printf= terse help version", texts="c format printf"
    ),
    "tac": declare("br", "s", longs="before regex separator= help version", texts="s separator"),
    "tail": declare(
        "fFqvz",
        "cns",
        longs="""bytes= follow? lines= max-unchanged-stats= pid= quiet silent retry sleep-interval= verbose
        zero-terminated help version""",
        numbers=True,
    ),
    "type": declare("afptP"),
    "which": declare("a"),
}
"""None of their options, listed or not, writes or runs anything: `cat *.md` is fine whatever the files are called."""

OTHER_READERS: dict[str, Options] = {
    **dict.fromkeys(("md5sum", "sha1sum", "sha256sum", "sha512sum"), _CHECKSUM),
    "diff": declare(
        "abBdEinNpqstTuwyZ",
        "CDFIUWx",
        longs="""brief color? context? expand-tabs help ignore-all-space ignore-blank-lines ignore-case
        ignore-matching-lines= ignore-space-change ignore-tab-expansion ignore-trailing-space initial-tab label=
        left-column minimal new-file normal report-identical-files show-c-function show-function-line= side-by-side
        speed-large-files strip-trailing-cr suppress-blank-empty suppress-common-lines text unified? version width=""",
    ),
    "du": declare(
        "abcDhHklmsSx0",
        "Bdt",
        longs="""all apparent-size block-size= bytes count-links dereference-args exclude= help human-readable inodes
        max-depth= no-dereference null one-file-system separate-dirs si summarize threshold= time? time-style= total
        version""",
    ),
    "file": declare(
        "bihkLnNr0",
        "F",
        longs="""brief dereference extension help keep-going mime mime-encoding mime-type no-buffer no-dereference
        no-pad print0 raw separator= version""",
    ),
    "sort": declare(
        "bcCdfghiMmnRrsuVz",
        "kSt",
        longs="""buffer-size= check? debug dictionary-order field-separator= general-numeric-sort help
        human-numeric-sort ignore-case ignore-leading-blanks ignore-nonprinting key= merge month-sort numeric-sort
        parallel= random-sort reverse sort= stable unique version version-sort zero-terminated""",
        texts="k t key field-separator",
    ),
    "uniq": declare(
        "cdDiuz",
        "fsw",
        longs="""all-repeated? check-chars= count group? help ignore-case repeated skip-chars= skip-fields= unique
        version zero-terminated""",
        max_operands=0,
    ),
    "wc": declare("cmlLw", longs="bytes chars help lines max-line-length version words"),
}

LS = declare(
    "aAbBcCdDfFgGhHiklmnNopqQrRsStuUvxXZ1",
    "ITw",
    longs="""all almost-all author block-size= classify? color? context dired directory escape file-type format=
    full-time group-directories-first help hide= hide-control-chars human-readable hyperlink? ignore= ignore-backups
    indicator-style= inode kibibytes literal no-group numeric-uid-gid quote-name quoting-style= recursive reverse
    show-control-chars si size sort= tabsize= time= time-style= version width= zero""",
    texts="I ignore hide",
)

GREP = declare(
    "abcEFGhHiIlLnoPqrsTUvVwxyzZ",
    "ABCefm",
    longs="""after-context= basic-regexp before-context= binary binary-files= byte-offset color? colour? context=
    count exclude= exclude-dir= exclude-from= extended-regexp file= files-with-matches files-without-match
    fixed-strings group-separator= help ignore-case include= initial-tab invert-match label= line-buffered line-number
    line-regexp max-count= no-filename no-group-separator no-ignore-case no-messages null null-data only-matching
    perl-regexp quiet recursive regexp= silent text version with-filename word-regexp""",
    files="f file exclude-from",
    texts="e regexp include exclude exclude-dir",
    numbers=True,
)

RG = declare(
    "abcFHhIilNnoPpqSsUuVvwx0.",
    "ABCEegmtTrjdM",
    longs="""after-context= before-context= byte-offset case-sensitive color= colors= column context=
    context-separator= count count-matches crlf encoding= engine= field-context-separator= field-match-separator=
    files files-with-matches files-without-match fixed-strings glob= glob-case-insensitive heading help hidden iglob=
    ignore-case include-zero invert-match json line-buffered line-number line-regexp max-columns= max-columns-preview
    max-count= max-depth= max-filesize= multiline multiline-dotall no-config no-filename no-heading no-ignore
    no-ignore-dot no-ignore-exclude no-ignore-files no-ignore-global no-ignore-messages no-ignore-parent no-ignore-vcs
    no-line-number no-messages no-require-git no-unicode null null-data one-file-system only-matching passthru pcre2
    pretty quiet regexp= replace= smart-case sort= sortr= stats text threads= trim type= type-list type-not=
    unrestricted version vimgrep with-filename word-regexp""",
    texts="e g r regexp glob iglob replace",
)

TREE = declare(
    "acCdDfFghinNpqQrsStuUvxAJ",
    longs="dirsfirst du filesfirst gitignore help ignore-case inodes matchdirs metafirst noreport prune si version",
)
"""Without those that take a value: a bundle of letters takes its values from the words behind it, one by one."""

DATE = declare("Ru", "d", "I", longs="date= debug help iso-8601? rfc-3339= rfc-email universal utc version")

_DIFF_LONGS = """abbrev? check color? color-words diff-algorithm= diff-filter= exit-code find-copies? find-renames?
    full-index function-context histogram ignore-all-space ignore-blank-lines ignore-cr-at-eol ignore-space-at-eol
    ignore-space-change inter-hunk-context= minimal name-only name-status no-color no-ext-diff no-patch no-renames
    no-textconv numstat patch patch-with-stat patience pickaxe-all pickaxe-regex quiet raw relative? shortstat stat?
    summary text unified? word-diff?"""
_DIFF = declare(
    "abcmprsuwzWR",
    "SG",
    "UMC",
    longs=f"{_DIFF_LONGS} cached merge-base staged",
    texts="S G",
    numbers=True,
)
_HISTORY = declare(
    "abcgimpqrsuwzEFWR",
    "nLSG",
    "UMC",
    longs=f"""{_DIFF_LONGS} abbrev-commit after= all author= author-date-order before= branches? cherry-pick committer=
    date= date-order decorate? first-parent fixed-strings follow format= full-history graph grep= invert-grep left-right
    max-count= merges no-abbrev-commit no-decorate no-merges no-notes oneline pretty? regexp-ignore-case remotes?
    reverse show-pulls simplify-by-decoration since= skip= tags? topo-order until= walk-reflogs""",
    texts="S G author committer grep",
    numbers=True,
)
GIT: dict[str, Options] = {
    "blame": declare(
        "bceflnpstw",
        "L",
        "CM",
        longs="abbrev? color-by-age color-lines line-porcelain minimal porcelain root show-email show-name show-number",
    ),
    "branch": declare(
        "arvi",
        longs="all color? format= ignore-case list no-color remotes show-current sort= verbose",
        max_operands=0,
    ),
    "cat-file": declare("tpse"),
    "describe": declare(
        longs="""abbrev? all always candidates= contains debug dirty? exact-match exclude= first-parent long match=
        tags"""
    ),
    "diff": _DIFF,
    "log": _HISTORY,
    "ls-files": declare(
        "cdfikmostuvz",
        "x",
        longs="""abbrev? cached deduplicate deleted directory eol error-unmatch exclude= exclude-standard full-name
        ignored killed modified others stage unmerged""",
        texts="x exclude",
    ),
    "ls-tree": declare("drtlz", longs="abbrev? full-name full-tree long name-only name-status object-only"),
    "merge-base": declare("a", longs="all fork-point independent is-ancestor octopus"),
    "reflog": declare("", "n", longs="all oneline max-count= date=", numbers=True, max_operands=0),
    "rev-list": declare(
        "",
        "n",
        longs="""abbrev? abbrev-commit after= all author= before= branches? committer= count date-order first-parent
        grep= left-right max-count= max-parents= merges min-parents= no-merges oneline parents quiet remotes? reverse
        since= tags? topo-order until=""",
        texts="author committer grep",
    ),
    "rev-parse": declare(
        "q",
        longs="""abbrev-ref? absolute-git-dir git-common-dir git-dir is-bare-repository is-inside-git-dir
        is-inside-work-tree is-shallow-repository quiet short? show-cdup show-prefix show-superproject-working-tree
        show-toplevel symbolic-full-name verify""",
    ),
    "show": _HISTORY,
    "status": declare(
        "bsvz",
        "",
        "u",
        longs="""ahead-behind branch ignored? long no-ahead-behind no-renames null porcelain? short show-stash
        untracked-files? verbose""",
    ),
}
