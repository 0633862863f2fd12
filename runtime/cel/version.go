package cel

import "strconv"

// Version is the minor version of a Kubernetes release 1.x. It decides which functions, macros and checks an [Environment] has.
type Version uint16

const (
	// Newest is the newest release whose language this package supports completely.
	Newest Version = 37
	// Compatible is the version for expressions that are written now. It is the release before [Newest], so that a cluster can go
	// back to that release.
	Compatible = Newest - 1
	// Stored is the version for expressions that are stored already, whichever release stored them. It has all features, so that
	// no release refuses an expression that another release accepted. An update compiles the expressions that it does not change
	// with Stored.
	Stored Version = 0xffff
)

// String returns a version such as "1.37", or "stored" for Stored.
func (v Version) String() string {
	if v == Stored {
		return "stored"
	}
	return "1." + strconv.Itoa(int(v))
}

// has reports whether the version has a feature that was added in since and removed in until. An until of zero means never.
func (v Version) has(since, until Version) bool {
	return v >= since && (until == 0 || v < until)
}
