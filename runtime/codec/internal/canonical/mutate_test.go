package canonical_test

import (
	"bytes"
	"math/rand"
	"slices"
)

// part is a value in a text; if it is a member, start is before its name and colon.
type part struct{ start, from, to int }

// parts returns all values in a text without white space, grouped by the object or list that they are in.
func parts(text []byte) (all [][]part) {
	var walk func(at int) int
	walk = func(at int) int {
		open := text[at]
		if open != '{' && open != '[' {
			return end(text, at)
		}
		var here []part
		for at++; text[at] != '}' && text[at] != ']'; {
			p := part{start: at, from: at}
			if open == '{' {
				p.from = end(text, at) + 1
			}
			p.to = walk(p.from)
			here = append(here, p)
			if at = p.to; text[at] == ',' {
				at++
			}
		}
		if len(here) > 0 {
			all = append(all, here)
		}
		return at + 1
	}
	walk(0)
	return all
}

// end returns the offset where a string or another scalar ends.
func end(text []byte, at int) int {
	if text[at] != '"' {
		for at < len(text) && !bytes.ContainsRune([]byte(",]}"), rune(text[at])) {
			at++
		}
		return at
	}
	for at++; text[at] != '"'; at++ {
		if text[at] == '\\' {
			at++
		}
	}
	return at + 1
}

// values returns texts that replace other values.
func values() []string {
	return []string{
		`null`, `true`, `false`, `0`, `-0`, `1`, `-1`, `01`, `1.0`, `1.5`, `1e3`, `1E3`, `1e21`, `1e-7`, `100000000000000000000000`, `127`, `128`, `255`, `256`,
		`-128`, `-129`, `32768`, `2147483647`, `2147483648`, `-2147483648`, `-2147483649`, `4294967296`, `9223372036854775807`, `9223372036854775808`,
		`18446744073709551615`, `18446744073709551616`, `""`, `"a"`, `"\u0061"`, `"\/"`, `"<"`, `"\u003c"`, `"\u003C"`, `"&"`, `"\u0026"`, "\"\u2028\"", `"\u2028"`,
		`"\u0000"`, `"\b"`, "\"\x01\"", "\"\xff\"", `"\ufffd"`, "\"\ufffd\"", `"\ud800"`, "\"\x7f\"", `"\n"`, `"\""`, `"\\"`, `"é"`, `"\u00e9"`,
		`{}`, `[]`, `[null]`, `{"a":null}`, `{"b":1,"a":2}`, `{"a":1,"b":2}`, `{"a":1,"a":1}`, `{"":""}`, `{"\u003c":"x"}`, `[ ]`, `[[]]`, `["a","b"]`, `[0]`, `{"n":5}`,
		`{"n":0}`, `{"n":7}`, `[{"text":"a"}]`, `[{"n":5}]`, `[7]`, `[1]`, `13`, `3`, `"red"`, `"T"`, `"TT"`, `"Tx"`,
		`"AA=="`, `"AB=="`, `"AAA="`, `"AAB="`, `"AAAA"`, `"A==="`, `"===="`, `"AA"`, `"-_8="`, `"AA==AA=="`,
		`"2020-01-02T03:04:05Z"`, `"2020-02-29T00:00:00Z"`, `"2021-02-29T00:00:00Z"`, `"2020-13-01T00:00:00Z"`, `"2020-01-01T24:00:00Z"`, `"2020-01-01T23:59:60Z"`,
		`"0001-01-01T00:00:00Z"`, `"0000-01-01T00:00:00Z"`, `"2020-01-01T00:00:00.5Z"`, `"2020-01-01T00:00:00+01:00"`, `"2020-01-01t00:00:00z"`, `"2020-04-31T00:00:00Z"`,
		`"2020-01-02T03:04:05.000001Z"`, `"1900-02-29T00:00:00Z"`, `"1"`, `"1024Mi"`, `"1Gi"`, `"1000m"`, `"0.5"`, `"1s"`, `"60s"`, `"1m0s"`,
	}
}

// mutated returns a text that differs from text in one or a few places.
func mutated(r *rand.Rand, text []byte) []byte {
	out := text
	for range 1 + r.Intn(8)/7 {
		if r.Intn(3) == 0 {
			out = byteMutated(r, out)
			return out // it may not be JSON any more
		}
		out = partMutated(r, out)
	}
	return out
}

func byteMutated(r *rand.Rand, text []byte) []byte {
	const interesting = "\"\\{}[],: \n\t0123456789-+.eEnulltrufasZT<>&/\x00\x1f\x7f\x80\xe2\xff_="
	out, at, c := slices.Clone(text), r.Intn(len(text)), interesting[r.Intn(len(interesting))]
	switch r.Intn(4) {
	case 0:
		return slices.Insert(out, at, c)
	case 1:
		return slices.Delete(out, at, at+1)
	case 2:
		out[at] ^= 1 << r.Intn(8)
		return out
	}
	out[at] = c
	return out
}

func partMutated(r *rand.Rand, text []byte) []byte {
	all := parts(text)
	if len(all) == 0 {
		return text
	}
	siblings := all[r.Intn(len(all))]
	i := r.Intn(len(siblings))
	p := siblings[i]
	join := func(pieces ...[]byte) []byte { return slices.Concat(pieces...) }
	switch r.Intn(5) {
	case 0: // the part is removed, with a comma
		from, to := p.start, p.to
		switch {
		case text[to] == ',':
			to++
		case text[from-1] == ',':
			from--
		}
		return join(text[:from], text[to:])
	case 1: // the part is duplicated
		return join(text[:p.to], []byte(","), text[p.start:])
	case 2: // the part is exchanged with another
		q := siblings[r.Intn(len(siblings))]
		if q.start < p.start {
			p, q = q, p
		}
		if p == q {
			return text
		}
		return join(text[:p.start], text[q.start:q.to], text[p.to:q.start], text[p.start:p.to], text[q.to:])
	}
	return join(text[:p.from], []byte(values()[r.Intn(len(values()))]), text[p.to:])
}
