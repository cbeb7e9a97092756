package cmd

import (
	"strconv"
	"strings"

	"github.com/dustin/go-humanize"

	"github.com/git-meta/git-meta-go/cmd/internal/ui"
	"github.com/git-meta/git-meta-go/prune"
	"github.com/git-meta/git-meta-go/prune/retention"
)

// showRetention prints one collection.
func (a *app) showRetention(o retentionOptions, s *retention.State) error {
	if o.json {
		text, err := s.MarshalJSON()
		if err != nil {
			return err
		}
		a.Out.Println(string(text))
		return nil
	}
	p := a.OutPainter()
	line := func(name, text string) { a.Out.Printf("  %s %s\n", ui.Pad(name+":", 12), text) }
	a.Out.Println(p.Paint(ui.Bold, ui.OneLine(s.Collection)))
	axis := func(name string, effective, def, override int64, from string, text func(int64) string) {
		line(name, bound(effective, def, override, from, s.Detached, text))
		if effective > 0 && effective < override {
			a.Out.Printf("  %s capped by %s; the override is %d\n", ui.Pad("", 12), prune.KeyMaxKeys, override)
		}
	}
	axis("max rows", s.Effective.MaxRows, s.AuthorDefault.MaxRows, s.Override.MaxRows, s.RowsFrom, rowsText)
	axis("max age", s.Effective.MaxAgeDays, s.AuthorDefault.MaxAgeDays, s.Override.MaxAgeDays, s.AgeFrom, daysText)
	if s.Detached {
		line("status", "detached: not in .git-meta, never swept")
		if s.Override != (retention.Bounds{}) {
			a.Out.Printf("  to remove the overrides: %s\n", retention.Command(s.Collection, "--clear-rows", "--clear-age"))
		}
		a.retentionProblem(s)
		return nil
	}
	line("live", rowsText(s.Rows)+", "+ui.Plural(s.Bytes, "byte", "bytes"))
	line("would prune", rowsText(s.WouldPrune))
	if s.Leftover > 0 {
		line("left over", rowsText(s.Leftover)+" that another clone's retention dropped; a sweep here deletes them too")
	}
	switch {
	case s.Effective == retention.Bounds{}:
		line("confirmed", "nothing to confirm: there is no bound")
	case s.Confirmed:
		line("confirmed", "yes: the automatic sweep acts on these bounds here")
	default:
		line("confirmed", "no: the automatic sweep leaves them alone; to confirm them here:")
		a.Out.Printf("  %s %s\n", ui.Pad("", 12), retention.Command(s.Collection, "--accept"))
	}
	a.retentionProblem(s)
	return nil
}

func rowsText(n int64) string { return ui.Plural(n, "row", "rows") }

// bound says what is in force on an axis, and which rule decided.
func bound(effective, def, override int64, from string, detached bool, text func(int64) string) string {
	switch {
	case effective == 0 && override > 0 && detached:
		return "not enforced (override " + strconv.FormatInt(override, 10) + ")"
	case effective == 0 && (override > 0 || def > 0):
		return "not enforced, see the problem below"
	case effective == 0:
		return "no bound"
	case override > 0 && def > 0:
		return text(effective) + " (override " + from + "; default " + strconv.FormatInt(def, 10) + ")"
	case override > 0:
		return text(effective) + " (override " + from + "; no default)"
	}
	return text(effective) + " (default, " + from + ")"
}

// retentionProblem warns of what is wrong with a collection.
func (a *app) retentionProblem(s *retention.State) {
	if s.Problem == nil {
		return
	}
	a.warn(s.Problem.Error())
	if h := hintOf(s.Problem); h != "" {
		a.Errf("%s %s", a.ErrPainter().Paint(ui.Hint, "hint:"), ui.Printable(h))
	}
}

// listRetention prints all collections: a table on a terminal, else lines with tabs.
func (a *app) listRetention(o retentionOptions, states []retention.State) {
	if o.json {
		parts := make([]string, len(states))
		for i := range states {
			text, _ := states[i].MarshalJSON()
			parts[i] = string(text)
		}
		a.Out.Println("[" + strings.Join(parts, ",") + "]")
		return
	}
	if len(states) == 0 {
		a.note("no collection is declared; git meta retention -h shows how .git-meta does it")
		return
	}
	rows := make([][]string, len(states))
	unconfirmed := 0
	for i := range states {
		rows[i] = a.retentionRow(&states[i])
		if s := &states[i]; !s.Confirmed && s.WouldPrune+s.Leftover > 0 {
			unconfirmed++
		}
	}
	if a.OutTTY {
		a.retentionTable(rows)
	} else {
		for _, r := range rows {
			a.Out.Println(strings.Join(r, "\t"))
		}
	}
	for i := range states {
		a.retentionProblem(&states[i])
	}
	if unconfirmed > 0 {
		a.note("the automatic sweep waits for a confirmation of %s: git meta retention sweep, or git meta retention --accept",
			ui.Plural(unconfirmed, "collection", "collections"))
	}
}

// retentionRow returns the columns: name, bounds in force, live rows and bytes, rows to
// go, axes with an override, status.
func (a *app) retentionRow(s *retention.State) []string {
	number := func(n int64) string {
		if n == 0 {
			return "-"
		}
		return strconv.FormatInt(n, 10)
	}
	axes := "-"
	switch {
	case s.Override.MaxRows > 0 && s.Override.MaxAgeDays > 0:
		axes = "rows,age"
	case s.Override.MaxRows > 0:
		axes = "rows"
	case s.Override.MaxAgeDays > 0:
		axes = "age"
	}
	status := "unconfirmed"
	switch {
	case s.Detached:
		status = "detached"
	case s.Problem != nil:
		status = "problem"
	case s.Effective == retention.Bounds{}:
		status = "unbounded"
	case s.Confirmed:
		status = "confirmed"
	}
	bytes := strconv.FormatInt(s.Bytes, 10)
	if a.OutTTY {
		bytes = humanize.IBytes(uint64(s.Bytes))
	}
	return []string{
		ui.OneLine(s.Collection), number(s.Effective.MaxRows), number(s.Effective.MaxAgeDays),
		strconv.FormatInt(s.Rows, 10), bytes, strconv.FormatInt(s.WouldPrune, 10), axes, status,
	}
}

var retentionHeader = []string{"COLLECTION", "ROWS", "DAYS", "LIVE", "BYTES", "PRUNES", "OVERRIDE", "STATUS"}

func (a *app) retentionTable(rows [][]string) {
	width := make([]int, len(retentionHeader))
	for i, h := range retentionHeader {
		width[i] = len(h)
	}
	for _, r := range rows {
		for i, cell := range r {
			width[i] = max(width[i], ui.DisplayWidth(cell))
		}
	}
	print := func(r []string, paint func(string) string) {
		var b strings.Builder
		for i, cell := range r {
			pad := strings.Repeat(" ", width[i]-ui.DisplayWidth(cell))
			switch {
			case i >= 1 && i <= 5: // numbers stand at the right
				b.WriteString(pad + cell + "  ")
			case i == len(r)-1:
				b.WriteString(cell)
			default:
				b.WriteString(cell + pad + "  ")
			}
		}
		a.Out.Println(paint(b.String()))
	}
	p := a.OutPainter()
	print(retentionHeader, func(s string) string { return p.Paint(ui.Heading, s) })
	for _, r := range rows {
		print(r, func(s string) string { return s })
	}
}
