package gitdb

import (
	"os/exec"
	"strings"
	"testing"
)

// TestImports guards the start-up time: none of these may come in.
func TestImports(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Skip(err)
	}
	for p := range strings.Lines(string(out)) {
		switch p = strings.TrimSpace(p); {
		case p == "net/http", p == "crypto/tls", p == "encoding/gob",
			p == "github.com/go-git/go-git/v5", strings.HasSuffix(p, "plumbing/object"), strings.HasSuffix(p, "storage/filesystem"):
			t.Errorf("imports %s", p)
		}
	}
}
