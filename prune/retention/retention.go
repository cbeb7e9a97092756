package retention

// Bounds says what a collection keeps. A zero field: no bound on that axis.
type Bounds struct {
	MaxRows    int64 // newest rows that stay
	MaxAgeDays int64 // days of 86,400 s; strictly older rows go
}

// State is what there is to say about one collection.
type State struct {
	Collection    string
	Effective     Bounds // per axis Override, else AuthorDefault; MaxRows capped by meta:prune:max-keys
	AuthorDefault Bounds // of the manifest
	Override      Bounds // of the project's strings, as they stand there
	WouldPrune    int64  // live rows that the next sweep deletes under Effective
	Rows, Bytes   int64  // live
	Leftover      int64  // rows that are not live: another clone's retention dropped them; the next sweep here deletes them
	Confirmed     bool   // the automatic sweep acts on these bounds
	Detached      bool   // not in the manifest: skipped
	Problem       error  // of the manifest entry or an override; the axis or collection is not enforced

	// What decides each axis: the key of the override, or file:line of the author's
	// default; empty where Effective has no bound.
	RowsFrom, AgeFrom string
}

// Axis is what a [Patch] does to one bound: nothing, unless Set or Clear.
type Axis struct {
	Set, Clear bool
	Value      int64
}

// Patch changes the overrides of a collection, per axis.
type Patch struct{ MaxRows, MaxAgeDays Axis }

// SweepOptions says what to sweep.
type SweepOptions struct {
	Collections []string          // none: all declared
	Limit       int64             // rows to delete at most; 0: no limit
	Passes      int               // at most; 0: until nothing is left
	DryRun      bool              // count what would be deleted
	Confirmed   bool              // only collections whose bounds are confirmed here; else the sweep confirms them
	Pass        func(SweepResult) // told after each pass; nil: nobody listens
}

// Swept is what a sweep deleted (in a dry run would delete) of one collection.
type Swept struct {
	Collection  string
	Rows, Bytes int64 // live rows
	Leftover    int64 // rows that were not live
}

// SweepResult is what a sweep did.
type SweepResult struct {
	Collections []Swept // those with anything deleted, by name
	Rows, Bytes int64   // of live rows, in all
	Leftover    int64
	Passes      int
	Done        bool // nothing is left over any bound
}

// AutoResult is what an automatic sweep found.
type AutoResult struct {
	Swept       *SweepResult // nil: it was not due or had nothing to do
	Unconfirmed []State      // collections with rows to go whose bounds nobody has confirmed here
	// Uncounted are collections with bounds that nobody has confirmed here, in a large
	// store that has not counted their rows: GetCollectionRetention does.
	Uncounted []string
	Next      int64 // ms; when it is due again, 0: switched off
}
