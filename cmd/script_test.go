package cmd_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/git-meta/git-meta-go/cmd"
	"github.com/rogpeppe/go-internal/testscript"
)

var update = flag.Bool("update", false, "rewrite the expected output in testdata/script")

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"git-meta": func() { os.Exit(cmd.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) },
		"peak":     peak,
	})
}

// TestScript runs testdata/script/*.txtar; its README.md says what scripts can use.
func TestScript(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("..", "testdata", "script"),
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup:               setupScript,
		Condition: func(cond string) (bool, error) {
			switch cond {
			case "peer":
				return os.Getenv("GIT_META_PEER") != "", nil
			case "root":
				return os.Geteuid() == 0, nil
			case "reftable":
				return hasReftable(), nil
			case "tmpfs":
				return canMount(), nil
			case "unprivileged":
				return os.Geteuid() != 0 || hasSetpriv(), nil
			}
			return false, fmt.Errorf("unknown condition %q", cond)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"ago":     cmdAgo,
			"bytes":   cmdBytes,
			"capture": cmdCapture,
			"exits":   cmdExits,
			"json":    cmdJSON,
			"keys":    cmdKeys,
			"many":    cmdMany,
			"repo":    cmdRepo,
			"sql":     cmdSQL,
			"tree":    cmdTree,
		},
	})
}

// setupScript gives a script an environment that doesn't depend on who runs it.
func setupScript(env *testscript.Env) error {
	home := filepath.Join(env.WorkDir, ".home")
	if err := os.MkdirAll(home, 0o777); err != nil {
		return err
	}
	config := filepath.Join(home, ".gitconfig")
	text := "[init]\n\tdefaultBranch = main\n[user]\n\tname = A U Thor\n\temail = author@example.com\n" +
		"[gc]\n\tauto = 0\n[protocol \"file\"]\n\tallow = always\n"
	if err := os.WriteFile(config, []byte(text), 0o666); err != nil {
		return err
	}
	const date = "2025-06-01T12:00:00Z"
	for name, value := range map[string]string{
		"HOME": home, "XDG_CONFIG_HOME": home, "TZ": "UTC", "LC_ALL": "C", "TERM": "dumb",
		"GIT_CONFIG_GLOBAL": config, "GIT_CONFIG_NOSYSTEM": "1", "GIT_TERMINAL_PROMPT": "0",
		"GIT_AUTHOR_NAME": "A U Thor", "GIT_AUTHOR_EMAIL": "author@example.com", "GIT_AUTHOR_DATE": date,
		"GIT_COMMITTER_NAME": "C O Mitter", "GIT_COMMITTER_EMAIL": "committer@example.com", "GIT_COMMITTER_DATE": date,
		"GORACE": "atexit_sleep_ms=0", "PEER": os.Getenv("GIT_META_PEER"),
	} {
		env.Setenv(name, value)
	}
	return nil
}

// cmdExits: exits CODE program args… runs a program that must end with CODE.
func cmdExits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE program args...")
	}
	want, err := strconv.Atoi(args[0])
	if err != nil {
		ts.Fatalf("exits: %q is not an exit code", args[0])
	}
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		exit := (*exec.ExitError)(nil)
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("%s: exit code %d, want %d", strings.Join(args[1:], " "), got, want)
	}
}

// cmdRepo: repo DIR makes a repository with one commit and changes to it.
func cmdRepo(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: repo DIR")
	}
	ts.Check(ts.Exec("git", "init", "-q", "--template=", args[0]))
	ts.Check(ts.Chdir(args[0]))
	ts.Check(ts.Exec("git", "commit", "-q", "--allow-empty", "-m", "one"))
}

// cmdCapture: capture NAME [FILE] sets $NAME to the last output, or to FILE's text.
func cmdCapture(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 || len(args) > 2 {
		ts.Fatalf("usage: capture NAME [FILE]")
	}
	file := "stdout"
	if len(args) == 2 {
		file = args[1]
	}
	ts.Setenv(args[0], strings.TrimSpace(ts.ReadFile(file)))
}

// cmdTree: tree REV prints "path = content" for every blob of a tree.
func cmdTree(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: tree REV")
	}
	out := ts.Stdout()
	git := func(stdin io.Reader, args ...string) []byte {
		c := gitCommand(ts, args...)
		c.Stdin = stdin
		b, err := c.Output()
		if err != nil {
			ts.Fatalf("git %s: %v", args[0], err)
		}
		return b
	}
	for line := range strings.SplitSeq(strings.TrimSuffix(string(git(nil, "ls-tree", "-r", "-z", args[0])), "\x00"), "\x00") {
		info, path, ok := strings.Cut(line, "\t")
		if !ok {
			continue
		}
		fmt.Fprintf(out, "%s = %s\n", path, strconv.Quote(string(git(nil, "cat-file", "blob", strings.Fields(info)[2]))))
	}
}

// cmdJSON: json FILE [path value] checks that FILE is JSON, and a value in it. A path is
// made of names and numbers joined by '/'; "" compares the whole.
func cmdJSON(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 1 && len(args) != 3 {
		ts.Fatalf("usage: json FILE [path value]")
	}
	dec := json.NewDecoder(strings.NewReader(ts.ReadFile(args[0])))
	dec.UseNumber()
	var v any
	err := dec.Decode(&v)
	if err == nil {
		if _, more := dec.Token(); more != io.EOF {
			err = errors.New("more than one value")
		}
	}
	if err != nil {
		ts.Fatalf("%s is not one JSON document: %v", args[0], err)
	}
	if len(args) == 1 {
		return
	}
	for part := range strings.SplitSeq(args[1], "/") {
		if part == "" {
			continue
		}
		switch at := v.(type) {
		case map[string]any:
			var ok bool
			if v, ok = at[part]; !ok {
				v = nil
			}
		case []any:
			i, err := strconv.Atoi(part)
			if err != nil || i < 0 || i >= len(at) {
				ts.Fatalf("json: no element %s in %s", part, args[1])
			}
			v = at[i]
		default:
			ts.Fatalf("json: %s: nothing below %v", args[1], v)
		}
	}
	got, ok := v.(string)
	if !ok {
		b := new(bytes.Buffer)
		enc := json.NewEncoder(b)
		enc.SetEscapeHTML(false)
		ts.Check(enc.Encode(v))
		got = strings.TrimSpace(b.String())
	}
	if (got == args[2]) == neg {
		ts.Fatalf("json: %s is %s, want %s", args[1], got, args[2])
	}
}

// cmdMany: many FROM TO program args… runs a program once for each number, with {} in
// its arguments replaced by the number.
func cmdMany(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: many FROM TO program args...")
	}
	from, err1 := strconv.Atoi(args[0])
	to, err2 := strconv.Atoi(args[1])
	if err1 != nil || err2 != nil {
		ts.Fatalf("many: FROM and TO are numbers")
	}
	for i := from; i <= to; i++ {
		run := make([]string, len(args)-2)
		for j, arg := range args[2:] {
			run[j] = strings.ReplaceAll(arg, "{}", strconv.Itoa(i))
		}
		ts.Check(ts.Exec(run[0], run[1:]...))
	}
}
