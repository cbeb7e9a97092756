package meta

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestParseSize(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]int64{
		"0": 0, "1": 1, "+5": 5, "512k": 512 << 10, "10M": 10 << 20, "1g": 1 << 30, " 2k ": 2 << 10, "007": 7,
		"9223372036854775807": math.MaxInt64, "8589934591g": 8589934591 << 30,
	} {
		if got, err := ParseSize(in); err != nil || got != want {
			t.Errorf("%q: got %d, %v, want %d", in, got, err, want)
		}
	}
	const notNumber, hint = "not a whole number with an optional suffix k, m or g", "use a size like 512k, 10m or 1g"
	for in, why := range map[string]string{
		"": notNumber, "k": notNumber, "10mb": notNumber, "1.5m": notNumber, "-1": notNumber, "++1": notNumber, "5 k": notNumber, "0x10": notNumber,
		"1t": notNumber, "١": notNumber, "9223372036854775808": "too large", "8589934592g": "too large", "99999999999999999999k": "too large",
	} {
		_, err := ParseSize(in)
		refused(t, err, `size "`+in+`": `+why, hint)
	}
}

func TestParseCount(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]int64{"0": 0, "10000": 10000, "+3": 3, "00": 0} {
		if got, err := ParseCount(in); err != nil || got != want {
			t.Errorf("%q: got %d, %v", in, got, err)
		}
	}
	for _, in := range []string{"", "+", "-1", "1k", " 1", "1 ", "1e3", "1_000", "++1"} {
		_, err := ParseCount(in)
		refused(t, err, `number "`+in+`": not a whole number`, "use digits only, like 10000")
	}
	_, err := ParseCount("9223372036854775808")
	refused(t, err, `number "9223372036854775808": too large`, "use digits only, like 10000")
}

func TestParseWindow(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 31, 12, 34, 56, 789e6, time.FixedZone("", 3600))
	for in, want := range map[string]string{
		"90d": "2025-12-31T11:34:56.789Z", "1D": "2026-03-30T11:34:56.789Z", "6m": "2025-10-02T11:34:56.789Z", "1y": "2025-03-31T11:34:56.789Z",
		"2Y": "2024-03-31T11:34:56.789Z", "0d": "2026-03-31T11:34:56.789Z", "-1d": "2026-04-01T11:34:56.789Z", "+7d": "2026-03-24T11:34:56.789Z",
		"300y": "1726-06-12T11:34:56.789Z", "1000y": "1026-11-29T11:34:56.789Z", // a time.Duration holds 292 years
		"2025-01-31": "2025-01-31T00:00:00Z", "2024-02-29": "2024-02-29T00:00:00Z", "2999-12-31": "2999-12-31T00:00:00Z",
	} {
		got, err := ParseWindow(in, now)
		if err != nil || got.Format(time.RFC3339Nano) != want {
			t.Errorf("%q: got %s, %v, want %s", in, got.Format(time.RFC3339Nano), err, want)
		}
	}
	for in, why := range map[string]string{
		"": "empty", " ": "not a window", " 90d": "not a window", "90d ": "not a window", "90d\n": "not a window",
		"d": "not a window", "90": "not a window", "90 d": "not a window", "1.5d": "not a window", "90days": "not a window", "1w": "not a window",
		"+-5d": "not a window", "--5d": "not a window", "1h": "not a window", "yesterday": "not a window", "5é": "not a window",
		"2025-1-1": "not a window", "2025-01-01T00:00:00Z": "not a window", "20250101": "not a window",
		"2025-02-30": "no such date", "2025-13-01": "no such date", "2025-02-29": "no such date", "abcd-ef-gh": "no such date",
		"99999999999d": "too long", "99999999999999999999d": "too long", "9999y": "too long", "-99999y": "too long",
	} {
		_, err := ParseWindow(in, now)
		refused(t, err, `window "`+quoteInner(in)+`": `+why, WindowHint)
	}
}

func TestEntryNames(t *testing.T) {
	t.Parallel()
	for want, e := range map[string]Entry{
		"1700000000000-aaf4c": {1700000000000, "hello"}, "1700000000001-7c211": {1700000000001, "world"}, "0-da39a": {0, ""},
	} {
		if got := e.Name(); got != want || !IsEntryName(got) {
			t.Errorf("got %s, want %s", got, want)
		}
		if ms, ok := EntryTime(want); !ok || ms != e.Time {
			t.Errorf("EntryTime(%s): got %d, %v", want, ms, ok)
		}
	}
	for name, want := range map[string]bool{
		"1-ABCDE": true, "99999999999999999999-abcde": true, "00-00000": true,
		"": false, "-abcde": false, "1-abcd": false, "1-abcdef": false, "1-abcdg": false, "1abcde": false, "-1-abcde": false, "1-ab-de": false, " 1-abcde": false,
	} {
		if got := IsEntryName(name); got != want {
			t.Errorf("IsEntryName(%q): got %v", name, got)
		}
	}
	if _, ok := EntryTime("99999999999999999999-abcde"); ok {
		t.Error("a time that does not fit is accepted")
	}
	for member, want := range map[string]string{
		"a": id, "b": "63d8dbd40c23542e740659a7168a0ce3138ea748", "c": "3410062ba67c5ed59b854387a8bc0ec012479368", "": "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391",
	} {
		if got := MemberID(member); got != want {
			t.Errorf("MemberID(%q): got %s", member, got)
		}
	}
}

// format.md §3: byte by byte what the peer writes
func TestJSONStrings(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"": `""`, "claude": `"claude"`, `he"llo\ é`: `"he\"llo\\ é"`, "\b\t\n\f\r": `"\b\t\n\f\r"`, "\x00\x01\x1f": `"\u0000\u0001\u001f"`,
		"</&>\x7f": "\"</&>\x7f\"", "\u2028\u2029\u0085": "\"\u2028\u2029\u0085\"", "\U0001f600": "\"\U0001f600\"", "'": `"'"`,
	} {
		if got := EncodeJSONString(in); got != want {
			t.Errorf("%q: got %s, want %s", in, got, want)
		}
		if got := DecodeJSONString(want); got != in {
			t.Errorf("%s: got %q, want %q", want, got, in)
		}
	}
	for in, want := range map[string]string{
		`"\u00e9\/\ud83d\ude00"`: "é/\U0001f600", // what other writers may write
		`plain`:                  `plain`, ``: ``, `"`: `"`, `"a"b"`: `"a"b"`, `"\x"`: `"\x"`, `["a"]`: `["a"]`, "\"a\nb\"": "\"a\nb\"",
	} {
		if got := DecodeJSONString(in); got != want {
			t.Errorf("%s: got %q, want %q", in, got, want)
		}
	}
}

func TestTombstones(t *testing.T) {
	t.Parallel()
	type tomb struct {
		Time     int64
		Email    string
		Explicit bool
	}
	for want, in := range map[string]tomb{
		`{"timestamp":1700000000005,"email":"t@e.x"}`:           {1700000000005, "t@e.x", false},
		`{"timestamp":-1,"email":"\"a\"\n<é>","explicit":true}`: {-1, "\"a\"\n<é>", true},
		`{"timestamp":0,"email":""}`:                            {0, "", false},
		`{"timestamp":9223372036854775807,"email":"unknown"}`:   {math.MaxInt64, "unknown", false},
	} {
		if got := string(EncodeTombstone(in.Time, in.Email, in.Explicit)); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	for in, want := range map[string]tomb{
		`{"timestamp":5,"email":"a"}`: {5, "a", false},
		" {\n\"x\": [1], \"email\": \"a\", \"timestamp\": 5, \"explicit\": true }\n": {5, "a", true},
		`{"timestamp":5,"email":"a","explicit":false}`:                               {5, "a", false},
		`{"timestamp":5,"email":"a","explicit":"yes"}`:                               {5, "a", false}, // somebody else's field
	} {
		ms, email, explicit, err := DecodeTombstone([]byte(in))
		if diff := cmp.Diff(tomb{ms, email, explicit}, want); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", in, err, diff)
		}
	}
	for _, in := range []string{
		``, `{}`, `null`, `5`, `[]`, `{"timestamp":5}`, `{"email":"a"}`, `{"timestamp":5.0,"email":"a"}`, `{"timestamp":1e3,"email":"a"}`,
		`{"timestamp":"5","email":"a"}`, `{"timestamp":5,"email":1}`, `{"timestamp":5,"email":null}`, `{"timestamp":9223372036854775808,"email":"a"}`,
		`{"timestamp":5,"email":"a"} x`, "{\"timestamp\":5,\"email\":\"\xff\"}", `{"Timestamp":5,"email":"a"}`, "old value",
	} {
		if ms, email, _, err := DecodeTombstone([]byte(in)); err == nil {
			t.Errorf("%s: got %d %q", in, ms, email)
		}
	}
}

// design §5.5
func TestTimesHeader(t *testing.T) {
	t.Parallel()
	const s = 1_700_000_000
	for want, in := range map[string][]int64{
		"":        {s * 1000, s * 1000},
		"v1 CgA":  {s*1000 + 5, s*1000 + 5},
		"v1 AAI":  {s * 1000, s*1000 + 1},
		"v1 AQ":   {s*1000 - 1},
		"v1 oI0G": {s*1000 + 50_000},
	} {
		if got := EncodeTimes(in, s); got != want {
			t.Errorf("%v: got %q, want %q", in, got, want)
		}
	}
	if got := EncodeTimes(nil, s); got != "" {
		t.Errorf("no times: got %q", got)
	}
	for _, in := range []string{"", "v1", "v2 CgA", "v1 CgA=", "v1 !!!!", "v1 Cg", "v1 CgAA", "v1 gICAgICAgICAgICAgIA", "v1 "} {
		if got, err := DecodeTimes(in, s, 2); err == nil {
			t.Errorf("%q: got %v", in, got)
		}
	}
}

func TestValues(t *testing.T) {
	t.Parallel()
	str, list, set := Value{Type: String, String: "a"}, Value{Type: List, Entries: []Entry{{1, "a"}, {2, "b"}}}, Value{Type: Set, Members: []string{"a", "b"}}
	for _, v := range []Value{str, list, set} {
		for _, o := range []Value{str, list, set} {
			if got := v.Equal(o); got != (v.Type == o.Type) {
				t.Errorf("%v.Equal(%v): got %v", v, o, got)
			}
		}
	}
	if diff := cmp.Diff([][]string{str.Items(), list.Items(), set.Items()}, [][]string{{"a"}, {"a", "b"}, {"a", "b"}}); diff != "" {
		t.Error(diff)
	}
	if got := OneLine("a\tb\nc\u2028d\x9be"); got != "a b c d\ufffde" {
		t.Errorf("OneLine: %q", got)
	}
}
