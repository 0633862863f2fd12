package bolt

import (
	"errors"

	"go.etcd.io/bbolt"
)

// The spare and the last room are values of zeros in the file. Commits that make the store grow can never use their pages.
// When the disk is full, the spare is removed, and deletions and compaction continue in its pages. The pieces of both are as
// large as the largest page that a transaction may have to write anew. So a transaction can use a piece without free
// neighbouring pages, and the spare fits again into the pages that are free afterwards. A file without a spare accepts no
// commit that makes it grow until it has one.
//
// After the spare was removed, small pages may be written between its free pages, so that a large page fits nowhere. The last
// room is for that case: it is removed only when a transaction for a single change does not fit, and is made again as soon as
// it fits.
const (
	spareValue  = 32 << 10 // two of them are in a page
	spareValues = 6
	spareBytes  = spareValue * spareValues

	lastBucket = "last"
	lastValues = 2 // in one page
)

// addSpare makes the spare and the last room, unless they exist.
func addSpare(tx *bbolt.Tx) error {
	return errors.Join(addZeros(tx, reserveBucket, spareValues), addZeros(tx, lastBucket, lastValues))
}

// addZeros puts values of zeros into a bucket.
func addZeros(tx *bbolt.Tx, bucket string, values byte) error {
	b, err := tx.CreateBucketIfNotExists([]byte(bucket))
	if err != nil {
		return err
	}
	zeros := make([]byte, spareValue)
	for i := range values {
		if err := b.Put([]byte{i}, zeros); err != nil {
			return err
		}
	}
	return nil
}

// hasSpare reports whether the file has a spare.
func hasSpare(tx *bbolt.Tx) bool {
	b := tx.Bucket([]byte(reserveBucket))
	return b != nil && b.Get([]byte{0}) != nil
}

// dropReserve removes the spare, and the room that is kept for the content of a journal. The transaction writes one page.
func (t txn) dropReserve() error {
	if t.tx.Bucket([]byte(reserveBucket)) == nil {
		return nil
	}
	return t.tx.DeleteBucket([]byte(reserveBucket))
}

// dropLast removes the last room. The transaction writes one page.
func (t txn) dropLast() error {
	if t.tx.Bucket([]byte(lastBucket)) == nil {
		return errNothing
	}
	return t.tx.DeleteBucket([]byte(lastBucket))
}

// settleInSteps is settle for a full disk. It removes the spare, and then writes the content of the journal into the trees in
// transactions that become smaller when one does not fit. If the smallest one does not fit, settleInSteps removes the last
// room.
func settleInSteps(update func(func(txn) error) error, settle func(t txn, limit int) (left int, err error)) error {
	if err := update(txn.dropReserve); err != nil {
		return err
	}
	for limit, left := batchChanges, 1; left > 0; {
		err := update(func(t txn) (err error) {
			left, err = settle(t, limit)
			return err
		})
		switch {
		case err == nil:
		case noSpace(err) && limit > 1:
			limit, left = limit/2, 1
		case noSpace(err) && update(txn.dropLast) == nil:
			left = 1
		default:
			return err
		}
	}
	return nil
}
