package bolt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"

	"go.etcd.io/bbolt"
)

// maxFindings is the maximum number of faults in an error.
const maxFindings = 20

var errEnough = errors.New("and more")

// findings collects the faults of a file.
type findings []error

// add is a pageWalk's report function.
func (f *findings) add(err error) error {
	if len(*f) == maxFindings {
		*f = append(*f, errEnough)
		return errEnough
	}
	*f = append(*f, err)
	return nil
}

func (f *findings) addf(format string, args ...any) error { return f.add(fmt.Errorf(format, args...)) }

// err returns nil if there are no findings.
func (f findings) err() error {
	if len(f) == 0 {
		return nil
	}
	var texts []string
	for _, e := range f {
		texts = append(texts, e.Error())
	}
	return fmt.Errorf("%w: %s", errDamaged, strings.Join(texts, "; "))
}

// checking checks the content of a file whose pages are sound.
type checking struct {
	findings
	stop    func() error
	visited int
	state   state
	entries int // in the log
	parts   int // number of parts of the values in the log

	expiring int // number of keys with a TTL
}

// run returns an error if the content cannot be read. Faults in the content are added to the findings.
func (c *checking) run(tx *bbolt.Tx, s state) error {
	c.state = s
	t, err := newTxn(tx)
	if err != nil {
		return err
	}
	for _, check := range []func(txn) error{c.names, c.log, c.index, c.expiry} {
		if err := check(t); err != nil && !errors.Is(err, errEnough) {
			return err
		}
	}
	return nil
}

// step is called for each entry visited.
func (c *checking) step() error {
	if c.visited++; c.visited%1024 == 0 {
		return c.stop()
	}
	return nil
}

// names reports unknown buckets and keys.
func (c *checking) names(t txn) error {
	err := t.tx.ForEach(func(name []byte, _ *bbolt.Bucket) error {
		switch string(name) {
		case metaBucket, logBucket, indexBucket, partsBucket, expiryBucket, journalBucket, reserveBucket, lastBucket:
			return nil
		}
		return c.addf("bucket %q is unknown", name)
	})
	if err != nil {
		return err
	}
	return t.meta.ForEach(func(k, _ []byte) error {
		switch string(k) {
		case formatKey, versionKey, stateKey, clockKey:
			return nil
		}
		return c.addf("meta has an unknown key %q", k)
	})
}

// log checks each change by itself, and the counters.
func (c *checking) log(t txn) error {
	s := c.state
	total, recent := s.scrubbedTotal, int64(0)
	err := t.log.ForEach(func(k, v []byte) error {
		if err := c.step(); err != nil {
			return err
		}
		c.entries++
		if len(k) != 8 {
			return c.addf("log: %q is no revision", k)
		}
		revision := int64(binary.BigEndian.Uint64(k))
		e, err := decodeEntry(revision, v)
		if err != nil {
			return c.add(err)
		}
		if e.split {
			c.parts += e.parts()
			if _, err := t.value(revision, e); err != nil {
				return c.add(err)
			}
		}
		switch {
		case revision < 1 || revision > s.revision:
			return c.addf("log: revision %d lies outside of 1 to %d", revision, s.revision)
		case checkKey(string(e.key)) != nil || e.deleted && (e.valueSize() > 0 || e.expires != 0) || v[0]&^(deletedFlag|splitFlag|expiringFlag) != 0:
			return c.addf("log: the change of revision %d cannot be", revision)
		case revision <= s.scrubbed && e.deleted:
			return c.addf("log: revision %d is a deletion that should be forgotten", revision)
		case revision <= s.scrubbed:
			return nil
		}
		total += int64(len(e.key)) + e.valueSize()
		if revision > s.compacted {
			recent++
		}
		if e.total != total {
			err := c.addf("log: the sizes up to revision %d are %d, it says %d: a change is missing before it, or too much",
				revision, total, e.total)
			total = e.total
			return err
		}
		return nil
	})
	if err != nil {
		return err
	}
	if recent != s.revision-max(s.compacted, firstRevision) {
		err = c.addf("log: it has %d changes after revision %d, and the revision is %d", recent, s.compacted, s.revision)
	}
	if err == nil {
		err = c.strayParts(t)
	}
	if err == nil && total != s.total {
		err = c.addf("log: the sizes of all changes are %d, the state says %d", total, s.total)
	}
	return err
}

// strayParts reports parts that belong to no value.
func (c *checking) strayParts(t txn) error {
	n := 0
	err := t.parts.ForEach(func(_, _ []byte) error {
		n++
		return c.step()
	})
	if err == nil && n != c.parts && len(c.findings) == 0 {
		err = c.addf("parts: there are %d parts of values, and the values in the log have %d", n, c.parts)
	}
	return err
}

// version is one entry of the index.
type version struct {
	revision int64
	prev     int64
	deleted  bool
}

// index checks that index and log agree, and that each change of a key refers to the previous one.
func (c *checking) index(t txn) error {
	n := 0
	var key []byte
	var newer version
	values := t.log.Cursor()
	err := t.index.ForEach(func(k, v []byte) error {
		if err := c.step(); err != nil {
			return err
		}
		n++
		name, revision, err := splitIndexKey(k)
		if err != nil {
			return c.add(err)
		}
		if len(v) != 1 || v[0]&^(deletedFlag|expiringFlag) != 0 {
			return c.addf("index: version %d of key %q has flags %x", revision, name, v)
		}
		e, err := changeAt(values, revision)
		if err != nil {
			return c.addf("index: version %d of key %q: %w", revision, name, err)
		}
		here := version{revision, e.prev, e.deleted}
		if !bytes.Equal(e.key, name) || v[0] != flags(e.deleted, e.expires) {
			return c.addf("index: version %d of key %q is that of key %q in the log", revision, name, e.key)
		}
		if !bytes.Equal(key, name) {
			err = errors.Join(c.oldest(key, newer), c.scheduled(t, revision, e))
		} else {
			err = c.linked(key, newer, here)
		}
		key, newer = append(key[:0], name...), here
		return err
	})
	if err == nil {
		err = c.oldest(key, newer)
	}
	if err == nil && n != c.entries {
		err = c.addf("the index has %d versions and the log %d", n, c.entries)
	}
	return err
}

// linked checks a version of a key against the next older one.
func (c *checking) linked(key []byte, newer, older version) error {
	want := older.revision
	if older.deleted {
		want = 0
	}
	switch {
	case newer.revision <= c.state.scrubbed:
		return c.addf("index: version %d of key %q should be forgotten, as version %d is", older.revision, key, newer.revision)
	case newer.prev != want || newer.deleted && want == 0:
		return c.addf("log: version %d of key %q follows %d, and it says %d", newer.revision, key, want, newer.prev)
	}
	return nil
}

// oldest checks the oldest version of a key.
func (c *checking) oldest(key []byte, v version) error {
	if v.revision > c.state.scrubbed && (v.prev != 0 || v.deleted) {
		return c.addf("log: version %d of key %q has none before it, and it says %d", v.revision, key, v.prev)
	}
	return nil
}

// expiry checks that the expiry bucket has no entries besides those that the check of the index expects.
func (c *checking) expiry(t txn) error {
	n := 0
	if b := t.expiry(); b != nil {
		err := b.ForEach(func(k, v []byte) error {
			n++
			if _, err := decodeExpiring(k, v); err != nil {
				return c.add(err)
			}
			return c.step()
		})
		if err != nil {
			return err
		}
	}
	if n != c.expiring && len(c.findings) == 0 {
		return c.addf("expiry: it has %d entries, and %d keys expire", n, c.expiring)
	}
	return nil
}

// scheduled checks that the newest value of a key is in the expiry bucket if it has a TTL.
func (c *checking) scheduled(t txn, revision int64, e entry) error {
	if e.expires == 0 {
		return nil
	}
	c.expiring++
	if b := t.expiry(); b == nil || b.Get(expiring{e.expires, revision}.key()) == nil {
		return c.addf("expiry: it does not have version %d of key %q, which expires", revision, e.key)
	}
	return nil
}

// journal checks that the changes in the journal follow those in the trees.
func (c *checking) journal(t txn, file *os.File) error {
	j, err := findJournal(t.tx, file)
	if err == nil && j != nil {
		_, _, err = j.read(file, c.state)
	}
	if errors.Is(err, errDamaged) {
		return c.add(err)
	}
	return err
}
