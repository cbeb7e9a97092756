package meta

// Progress receives how far a long job is. Implementations must be cheap: Add may
// be called for every key. A zero total means that it is not known.
type Progress interface {
	// Start begins a phase, for example "Serializing keys".
	Start(title string, total int)
	// Add counts n more units as done.
	Add(n int)
	// Done ends the phase.
	Done()
}

// NoProgress is a Progress that does nothing.
type NoProgress struct{}

// Start does nothing.
func (NoProgress) Start(string, int) {}

// Add does nothing.
func (NoProgress) Add(int) {}

// Done does nothing.
func (NoProgress) Done() {}
