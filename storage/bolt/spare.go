package bolt

import (
	"go.etcd.io/bbolt"
)

// The spare is room in the file itself that writes which make the store grow never get: zeros, which are given up when the
// disk is full, so that deletions and compaction can go on there. It is in pieces as large as the largest page that a
// transaction may have to write anew, so that whoever gets it need not find neighbours, and so that it fits into what is free
// again afterwards. A file without a spare takes nothing that makes it grow until it has one.
const (
	spareValue  = 32 << 10 // two of them are in a page
	spareValues = 8
	spareBytes  = spareValue * spareValues
)

// addSpare makes the spare, unless it is there.
func addSpare(tx *bbolt.Tx) error {
	b, err := tx.CreateBucketIfNotExists([]byte(reserveBucket))
	if err != nil {
		return err
	}
	zeros := make([]byte, spareValue)
	for i := range byte(spareValues) {
		if err := b.Put([]byte{i}, zeros); err != nil {
			return err
		}
	}
	return nil
}

// hasSpare says that the file has a spare.
func hasSpare(tx *bbolt.Tx) bool {
	b := tx.Bucket([]byte(reserveBucket))
	return b != nil && b.Get([]byte{0}) != nil
}

// dropReserve gives up the spare, and what is kept for what a journal has: a transaction that writes one page.
func (t txn) dropReserve() error {
	if t.tx.Bucket([]byte(reserveBucket)) == nil {
		return nil
	}
	return t.tx.DeleteBucket([]byte(reserveBucket))
}

// settleInSteps is settle for a full disk: it gives up the spare, and then writes what the journal has into the trees in
// transactions that become smaller when one does not fit.
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
		default:
			return err
		}
	}
	return nil
}
