package etcd

import (
	"fmt"
	"testing"
)

func TestPrefixEnd(t *testing.T) {
	for prefix, want := range map[string]string{
		"": "", "a": "b", "/registry/": "/registry0", "a\xff": "b", "a\xff\xff": "b", "\xff": "", "\xff\xff": "", "a\xfe": "a\xff",
	} {
		if got := prefixEnd(prefix); got != want {
			t.Errorf("prefixEnd(%q) = %q, want %q", prefix, got, want)
		}
	}
}

func TestIntervals(t *testing.T) {
	for _, test := range []struct{ prefix, from, to, want string }{
		{"", "", "", `["\x00","compact_rev_key") ["compact_rev_kez","\x00")`},
		{"", "a", "b", `["a","b")`},
		{"", "/registry/", "/registry0", `["/registry/","/registry0")`},
		{"", "a", "", `["a","compact_rev_key") ["compact_rev_kez","\x00")`},
		{"", "d", "", `["d","\x00")`},
		{"", "compact_rev_key", "", `["compact_rev_kez","\x00")`},
		{"", "compact_rev_keys", "compact_rev_keyz", ``},
		{"", "c", "compact_rev_key", `["c","compact_rev_key")`},
		{"", "c", "compact_rev_keyx", `["c","compact_rev_key")`},
		{"", "b", "a", ``},
		{"", "a", "a", ``},
		{"", "", "\x00", ``},
		{"", "a\x00", "a\x00\x00", `["a\x00","a\x00\x00")`},
		{"/x/", "", "", `["/x/","/x0")`},
		{"/x/", "a", "", `["/x/a","/x0")`},
		{"/x/", "", "b", `["/x/","/x/b")`},
		{"x\xff", "", "", `["x\xff","y")`},
		{"\xff", "", "", `["\xff","\x00")`},
		{"\xff", "a", "\xff\xff", `["\xffa","\xff\xff\xff")`},
		{"c", "", "", `["c","compact_rev_key") ["compact_rev_kez","d")`},
	} {
		got := ""
		in, n := newLayout(test.prefix).intervals(test.from, test.to)
		for i, v := range in[:n] {
			if i > 0 {
				got += " "
			}
			got += fmt.Sprintf("[%q,%q)", v.from, v.to)
		}
		if got != test.want {
			t.Errorf("prefix %q, [%q, %q): %s, want %s", test.prefix, test.from, test.to, got, test.want)
		}
	}
}

func TestKeysThatAreRefused(t *testing.T) {
	for _, test := range []struct {
		prefix, key string
		ok          bool
	}{
		{"", "a", true}, {"", "", false}, {"", "a\x00", false}, {"", "compact_rev_key", false}, {"", "compact_rev_key.raise", false},
		{"", "compact_rev_ke", true}, {"c", "ompact_rev_key", false}, {"c", "compact_rev_key", true}, {"/x/", "compact_rev_key", true},
	} {
		if err := newLayout(test.prefix).check(test.key); (err == nil) != test.ok {
			t.Errorf("prefix %q, key %q: %v", test.prefix, test.key, err)
		}
		if full := test.prefix + test.key; hidden(full) != hides([]byte(full)) {
			t.Errorf("hidden and hides differ for %q", full)
		}
	}
}
