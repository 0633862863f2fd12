package etcd

import (
	"errors"
	"fmt"
	"strings"
)

// compactKey is the key with which the servers of one etcd, including kube-apiservers, agree on which of them compacts.
const compactKey = "compact_rev_key"

// raiseKey is the key that Raise writes.
const raiseKey = compactKey + ".raise"

// Keys in [hiddenFrom, hiddenTo) are not part of any store.
const (
	hiddenFrom = compactKey
	hiddenTo   = "compact_rev_kez"
)

// everything as a key is before all other keys; as the end of an interval it is no bound.
const everything = "\x00"

// layout maps the keys of a store to keys of an etcd.
type layout struct {
	prefix string
	end    string // end of the keys with prefix; "" is no bound
}

func newLayout(prefix string) layout { return layout{prefix, prefixEnd(prefix)} }

// prefixEnd returns the first key after those with a prefix, "" if there is none.
func prefixEnd(prefix string) string {
	for n := len(prefix); n > 0; n-- {
		if c := prefix[n-1]; c < 0xff {
			return prefix[:n-1] + string([]byte{c + 1})
		}
	}
	return ""
}

func hidden(key string) bool { return strings.HasPrefix(key, compactKey) }

// hides is hidden for a key in the form in which etcd returns it.
func hides(key []byte) bool {
	return len(key) >= len(compactKey) && string(key[:len(compactKey)]) == compactKey
}

// key returns the etcd key of a key that was checked.
func (l layout) key(key string) []byte {
	k := make([]byte, 0, len(l.prefix)+len(key))
	return append(append(k, l.prefix...), key...)
}

// name is the inverse of key.
func (l layout) name(key []byte) string { return string(key[len(l.prefix):]) }

// check returns an error for keys that cannot be part of a store.
func (l layout) check(key string) error {
	switch {
	case key == "":
		return errors.New("etcd: the key is empty")
	case strings.IndexByte(key, 0) >= 0:
		return fmt.Errorf("etcd: key %q contains a NUL byte", key)
	case strings.HasPrefix(compactKey, l.prefix) && strings.HasPrefix(key, compactKey[len(l.prefix):]):
		return fmt.Errorf("etcd: key %q is reserved: keys of an etcd that begin with %s belong to its compaction", l.prefix+key, compactKey)
	}
	return nil
}

// interval is [from, to) in the form that etcd needs.
type interval struct{ from, to []byte }

// intervals returns the n intervals of etcd keys for [from, to), in order and without hidden keys. n is 0 if the interval is
// empty.
func (l layout) intervals(from, to string) (in [2]interval, n int) {
	if to != "" && to <= from {
		return in, 0
	}
	lo, hi := l.prefix+from, l.end
	if to != "" {
		hi = l.prefix + to
	}
	add := func(lo, hi string) {
		if hi == everything || hi != "" && lo >= hi { // no key is before the first
			return
		}
		in[n] = bounds(lo, hi)
		n++
	}
	if lo >= hiddenTo || hi != "" && hi <= hiddenFrom {
		add(lo, hi)
		return in, n
	}
	if lo < hiddenFrom {
		add(lo, hiddenFrom)
	}
	if hi == "" || hi > hiddenTo {
		add(max(lo, hiddenTo), hi)
	}
	return in, n
}

// under returns the interval of the keys with a prefix, including hidden ones.
func (l layout) under(prefix string) interval {
	return bounds(l.prefix+prefix, prefixEnd(l.prefix+prefix))
}

func bounds(lo, hi string) interval {
	if lo == "" {
		lo = everything
	}
	if hi == "" {
		hi = everything
	}
	return interval{[]byte(lo), []byte(hi)}
}
