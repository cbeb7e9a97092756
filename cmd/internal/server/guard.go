package server

import (
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
)

// admit checks that a request comes from somebody who may ask.
func (s *Server) admit(r *http.Request) *failure {
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !s.ownHost(r.Host, local) {
		return fail(http.StatusForbidden, "use the address that git meta serve has printed, or the name given with --listen", "host %q: not an address of this server", r.Host)
	}
	for _, origin := range r.Header.Values("Origin") {
		host, ok := strings.CutPrefix(origin, "http://")
		if !ok || !s.ownHost(host, local) {
			return fail(http.StatusForbidden, "this server is not for web pages of other sites", "origin %q: not this server", origin)
		}
	}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	const hint = "send the header Authorization: Bearer TOKEN, with the token from the file that git meta serve has named"
	switch {
	case token == "" || !strings.EqualFold(scheme, "Bearer"):
		return fail(http.StatusUnauthorized, hint, "the token is missing")
	case !sameSecret(strings.TrimSpace(token), s.c.Token):
		return fail(http.StatusUnauthorized, hint, "the token is wrong")
	}
	return nil
}

// sameSecret compares in a time that tells nothing, not even a length.
func sameSecret(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

// ownHost reports whether a Host header names this server: with the right port, the
// address that the connection came to, any loopback address if that was one, localhost, or
// the name that the listener was asked for. A name is accepted only because it was given
// here; one that merely leads here is somebody else's.
func (s *Server) ownHost(host string, local net.Addr) bool {
	tcp, ok := local.(*net.TCPAddr)
	if !ok {
		return false
	}
	name, port, err := net.SplitHostPort(host)
	if err != nil {
		name, port = strings.Trim(host, "[]"), "80"
	}
	at := tcp.AddrPort()
	if want := at.Port(); port != strconv.Itoa(int(want)) {
		return false
	}
	here := at.Addr().Unmap().WithZone("")
	if ip, err := netip.ParseAddr(name); err == nil {
		ip = ip.Unmap().WithZone("")
		return ip == here || ip.IsLoopback() && here.IsLoopback()
	}
	return strings.EqualFold(name, "localhost") && here.IsLoopback() || s.host != "" && strings.EqualFold(name, s.host)
}
