package server

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"
)

// TokenFile holds the token of a running server, for clients that may read the repository's
// git directory.
type TokenFile struct {
	Path  string
	Token string
}

// NewTokenFile makes a token and stores it in dir, in a file that only its owner can read,
// named after the address of the server: servers of one repository don't share one.
func NewTokenFile(dir, addr string) (t *TokenFile, err error) {
	var secret [32]byte
	if _, err := rand.Read(secret[:]); err != nil {
		return nil, err
	}
	name := "git-meta-serve-" + strings.Map(func(r rune) rune {
		if r == '.' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '-'
	}, addr) + ".token"
	t = &TokenFile{Path: filepath.Join(dir, name), Token: hex.EncodeToString(secret[:])}
	f, err := os.CreateTemp(dir, "git-meta-serve-*.tmp") // mode 0600
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
		}
	}()
	if _, err := f.WriteString(t.Token + "\n"); err != nil {
		return nil, err
	}
	if err := f.Close(); err != nil {
		return nil, err
	}
	return t, os.Rename(f.Name(), t.Path)
}

// Remove deletes the file, unless another server has put its own there.
func (t *TokenFile) Remove() error {
	b, err := os.ReadFile(t.Path)
	if errors.Is(err, os.ErrNotExist) || err == nil && strings.TrimSpace(string(b)) != t.Token {
		return nil
	}
	if err != nil {
		return err
	}
	return os.Remove(t.Path)
}
