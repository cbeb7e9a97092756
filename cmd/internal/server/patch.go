package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"

	"github.com/git-meta/git-meta-go/prune/retention"
)

const patchHint = `send for example {"maxRows": 500} or {"maxAgeDays": null}`

// readPatch reads the body of a PATCH. It is strict: what it does not understand might
// have been meant to keep rows.
func readPatch(r *http.Request) (p retention.Patch, err error) {
	if err := checkType(r); err != nil {
		return p, err
	}
	body, err := io.ReadAll(r.Body)
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		return p, fail(http.StatusRequestEntityTooLarge, patchHint, "body: more than %d bytes", tooLarge.Limit)
	}
	if err != nil {
		return p, fail(http.StatusBadRequest, "", "body: %v", err)
	}
	return parsePatch(body)
}

func checkType(r *http.Request) error {
	const hint = "send the header Content-Type: application/json"
	typ, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	charset := params["charset"]
	switch {
	case r.Header.Get("Content-Type") == "":
		return fail(http.StatusUnsupportedMediaType, hint, "content type: missing")
	case err != nil || typ != "application/json" && typ != "application/merge-patch+json" || charset != "" && !strings.EqualFold(charset, "utf-8"):
		return fail(http.StatusUnsupportedMediaType, hint, "content type %q: not application/json", r.Header.Get("Content-Type"))
	case r.Header.Get("Content-Encoding") != "":
		return fail(http.StatusUnsupportedMediaType, "send the body as it is", "content encoding %q: not supported", r.Header.Get("Content-Encoding"))
	}
	return nil
}

// parsePatch reads {"maxRows": N|null, "maxAgeDays": N|null}; either may be missing.
func parsePatch(body []byte) (p retention.Patch, err error) {
	bad := func(format string, args ...any) (retention.Patch, error) {
		return retention.Patch{}, fail(http.StatusBadRequest, patchHint, "body: "+format, args...)
	}
	if len(bytes.TrimSpace(body)) == 0 {
		return bad("empty")
	}
	if !json.Valid(body) { // one whole document
		return bad("not valid JSON, or more than one document")
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return bad("not an object")
	}
	axes := map[string]*retention.Axis{"maxRows": &p.MaxRows, "maxAgeDays": &p.MaxAgeDays}
	for dec.More() {
		t, err := dec.Token()
		if err != nil {
			return bad("%v", err)
		}
		name, _ := t.(string)
		axis, known := axes[name]
		switch {
		case !known:
			return bad("field %q: unknown", name)
		case *axis != (retention.Axis{}):
			return bad("field %q: given twice", name)
		}
		if t, err = dec.Token(); err != nil {
			return bad("%v", err)
		}
		switch v := t.(type) {
		case nil:
			axis.Clear = true
		case json.Number:
			n, err := strconv.ParseInt(v.String(), 10, 64)
			if errors.Is(err, strconv.ErrRange) {
				return p, fail(http.StatusUnprocessableEntity, patchHint, "%s %s: out of range", name, v)
			}
			if err != nil {
				return p, fail(http.StatusUnprocessableEntity, patchHint, "%s %s: not a whole number in plain digits", name, v)
			}
			axis.Set, axis.Value = true, n
		default:
			return bad("field %q: neither a number nor null", name)
		}
	}
	return p, nil
}
