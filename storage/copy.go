package storage

import "context"

// CopyOptions refines Copy. The zero CopyOptions is valid.
type CopyOptions struct {
	// MaxEmptyCommits is how many commits Copy may make to raise the destination's revision above the source's, when
	// the destination cannot keep revisions; 0 is 1,000,000, a negative number is none.
	MaxEmptyCommits int64
}

// CopyResult says what Copy has done.
type CopyResult struct {
	Revision int64 // of the source's state that was copied
	Values   int64
	Expiring int64 // values with a TTL, which were left out
}

// Copy copies the values of src, as they are at one revision, into dst, which must be empty, so that a program can
// move from one backend to another.
//
// A destination that is a [Loader] (memory, bolt) keeps the revision of every value and of the store: clients go on
// with the resourceVersions they have. Any other must be a [Raiser] (etcd): its revision is first raised above the
// source's and its history forgotten, so that a resourceVersion of the source is answered as expired, never with
// another state; with too many empty commits needed nothing is done and the error is a *RaiseError.
//
// src may be in use; changes after the copied state are not in the copy. Nobody may use dst before Copy has
// returned; after an error its content is incomplete and must be discarded. Values with a TTL (events, leases of
// servers) are not copied: they would live for ever. Errors: ErrNotEmpty, ErrUnsupported, ErrCompacted when src
// forgets the state while it is copied, and those of the two backends.
func Copy(ctx context.Context, dst, src Backend, opts CopyOptions) (CopyResult, error) {
	return CopyResult{}, ErrUnsupported
}
