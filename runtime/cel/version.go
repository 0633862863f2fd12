package cel

import "strconv"

// Version is the minor version of a Kubernetes release 1.x. It says which functions, macros and checks an [Environment] has.
type Version uint16

const (
	// Newest is the release whose language this package knows whole.
	Newest Version = 37
	// Compatible is what expressions that are written now may use: the release before, so that one can go back to it.
	Compatible = Newest - 1
	// Stored is for expressions that are stored already, by whichever release: everything that is known.
	Stored Version = 0xffff
)

// String is as in 1.37.
func (v Version) String() string {
	if v == Stored {
		return "stored"
	}
	return "1." + strconv.Itoa(int(v))
}

// has says whether a version has what came in one and left in another; zero is never.
func (v Version) has(since, until Version) bool {
	return v >= since && (until == 0 || v < until)
}
