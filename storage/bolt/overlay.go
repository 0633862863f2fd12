package bolt

import (
	"github.com/tidwall/btree"
)

// overlay has the changes that are shown but not in the trees of the file yet. The versions are in key order, and the newest
// version of a key comes first. An overlay that was published never changes. A nil overlay is empty.
type overlay struct {
	versions *btree.BTreeG[*change]
}

func newOverlay() *overlay {
	return &overlay{versions: btree.NewBTreeGOptions(before, btree.Options{NoLocks: true})}
}

func before(a, b *change) bool {
	if a.key != b.key {
		return a.key < b.key
	}
	return a.revision > b.revision
}

// published returns a copy that may be read while o is changed.
func (o *overlay) published() *overlay {
	if o.versions.Len() == 0 {
		return nil
	}
	return &overlay{versions: o.versions.Copy()}
}

// version returns the newest version of key not newer than at, or nil if there is none here.
func (o *overlay) version(key string, at int64) (found *change) {
	if o == nil {
		return nil
	}
	o.versions.Ascend(&change{key: key, revision: at}, func(c *change) bool {
		if c.key == key {
			found = c
		}
		return false
	})
	return found
}

// between returns, for every key in [from, to), the newest version not newer than at; to "" is no bound.
func (o *overlay) between(from, to string, at int64) (found []*change) {
	if o == nil || to != "" && from >= to {
		return nil
	}
	last := ""
	o.versions.Ascend(&change{key: from, revision: at}, func(c *change) bool {
		if to != "" && c.key >= to {
			return false
		}
		if c.revision <= at && c.key != last {
			found, last = append(found, c), c.key
		}
		return true
	})
	return found
}
